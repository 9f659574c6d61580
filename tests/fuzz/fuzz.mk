# SPDX-License-Identifier: Apache-2.0
# Fuzzing: every tests/fuzz/fuzz_NAME.c is a libFuzzer target. Its seeds: testdata/fuzz/NAME/, what
# testdata/fuzz/seeds names for it, and what seeds.c makes; tests/fuzz/run says the rest.
#   make fuzz [FUZZ_TIME=60] [FUZZ=NAME]   each target that long, as many at once as there are CPUs
#   make fuzz FUZZ_RUNS=1000000            each until it has run that many inputs, however long it takes
#   make check-fuzz                        10 s each, all at once: what CI runs
FUZZ_TIME ?= 60
FUZZ_RUNS ?=
FUZZ_CC   ?= $(if $(shell command -v ccache 2>/dev/null),ccache )clang
FUZZ_SRC  := $(wildcard tests/fuzz/fuzz_$(or $(FUZZ),*).c)
FUZZ_BINS := $(patsubst tests/fuzz/%.c,$(O)/tests/fuzz/%,$(FUZZ_SRC))
FUZZ_LIBS := $(filter-out $(call lib_of,bpf_loader),$(LIBS_OURS))
FUZZ_MAKE  = $(MAKE) --no-print-directory VARIANT=fuzz BPF=0 CC="$(FUZZ_CC)" FUZZ_TIME=$(1) FUZZ_JOBS=$(2) FUZZ_RUNS=$(FUZZ_RUNS) fuzz-run

$(O)/tests/fuzz/fuzz_%: $(O)/tests/fuzz/fuzz_%.o $(FUZZ_LIBS)
	$(call say,LD,$@)
	$(Q)$(CC) $(SAN) -fsanitize=fuzzer -o $@ $< -Wl,--start-group $(FUZZ_LIBS) -Wl,--end-group $(LIBS)

$(O)/tests/fuzz/seeds: $(O)/tests/fuzz/seeds.o $(FUZZ_LIBS)
	$(call say,LD,$@)
	$(Q)$(CC) $(SAN) -fsanitize=address,undefined -o $@ $< -Wl,--start-group $(FUZZ_LIBS) -Wl,--end-group $(LIBS)

.PHONY: fuzz check-fuzz fuzz-run
fuzz:
	+$(Q)$(call FUZZ_MAKE,$(FUZZ_TIME),0)
check-fuzz:
	$(Q)scripts/deps ci
	+$(Q)$(call FUZZ_MAKE,10,99)
fuzz-run: $(FUZZ_BINS) $(O)/tests/fuzz/seeds
	$(Q)mkdir -p $(O)/fuzz && $(O)/tests/fuzz/seeds $(O)/fuzz testdata/demo.criticast
	$(Q)FUZZ_RUNS=$(FUZZ_RUNS) tests/fuzz/run $(O)/fuzz $(FUZZ_TIME) $(FUZZ_JOBS) $(FUZZ_BINS)
