# SPDX-License-Identifier: Apache-2.0
# Tests. A Criterion suite is every tests/unit/test_*.c (one program); everything else that can be
# run is listed in TESTS: exit 0 passed, 77 skipped, else failed, or its own closing line
# "N passed, N failed, N skipped" is added up.

UNIT_SRC := $(wildcard tests/unit/*.c)
UNIT_OBJ := $(patsubst %.c,$(O)/%.o,$(UNIT_SRC))
TEST_INC := $(addprefix -Isrc/,$(LAYERS)) -Itests -DCC_SRC_DIR='"$(CURDIR)"'

$(O)/tests/%.o: tests/%.c Makefile tests/tests.mk
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CFLAGS) -Wno-conversion $(TEST_INC) -DHAVE_BPF=$(BPF) -c -o $@ $<

TEST_LIBS = -Wl,--start-group $(LIBS_OURS) -Wl,--end-group $(LIBS)

$(O)/tests/unit/unit: $(UNIT_OBJ) $(LIBS_OURS)
	$(call say,LD,$@)
	$(Q)$(CC) $(SAN) -o $@ $(UNIT_OBJ) $(TEST_LIBS) -lcriterion

# one-file programs: drivers, tsan tests, loads for live tests
PROG_SRC := $(wildcard tests/oracle/*.c tests/tsan/*.c tests/live/*.c tests/tui/*.c)
PROGS := $(patsubst %.c,$(O)/%,$(PROG_SRC))
$(O)/tests/%: $(O)/tests/%.o $(LIBS_OURS)
	$(call say,LD,$@)
	$(Q)$(CC) $(SAN) -o $@ $< $(TEST_LIBS) $(if $(findstring tests/tui/,$@),-lvterm)

# scripts: *.test in these folders, run with CRITICAST and BUILD set
TEST_SCRIPTS := $(sort $(wildcard tests/oracle/*.test tests/tui/*.test tests/cli/*.test tests/live/*.test))
TSAN_PROGS := $(patsubst tests/tsan/%.c,$(O)/tests/tsan/%,$(wildcard tests/tsan/*.c))

.PRECIOUS: $(O)/tests/%.o
.PHONY: test test-deps test-run test-build check-asan check-tsan
test-deps:
	$(Q)scripts/deps test
test: test-deps
	$(Q)$(MAKE) --no-print-directory test-run
test-build: all $(O)/tests/unit/unit $(PROGS)
test-run: test-build
	$(Q)BUILD=$(O) CRITICAST=$(CURDIR)/$(O)/criticast tests/run $(O)/tests/unit/unit $(TEST_SCRIPTS) $(TSAN_PROGS)
check-asan:
	$(Q)ASAN_OPTIONS=detect_leaks=1 $(MAKE) --no-print-directory VARIANT=asan test-run
check-tsan:
	$(Q)$(MAKE) --no-print-directory VARIANT=tsan tsan-run
.PHONY: tsan-run
tsan-run: $(TSAN_PROGS)
	$(Q)BUILD=$(O) tests/run $(TSAN_PROGS)
