# SPDX-License-Identifier: Apache-2.0
# Benchmarks: figures, never gates.
BENCH_SRC := $(filter-out %.bpf.c,$(wildcard bench/*.c))
BENCH_PROGS := $(patsubst bench/%.c,$(O)/bench/%,$(BENCH_SRC))
$(O)/bench/%: bench/%.c $(LIBS_OURS) Makefile
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CFLAGS) -Wno-conversion $(addprefix -Isrc/,$(LAYERS)) -o $@ $< $(TEST_LIBS)

# what tests look into processes with, and libunwind as they use it
STACKS_OBJ := $(O)/tests/unit/symbol_util.o $(O)/tests/unit/symbol_libunwind.o
$(O)/bench/stacks: bench/stacks.c $(STACKS_OBJ) $(LIBS_OURS) Makefile
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CFLAGS) -Wno-conversion $(addprefix -Isrc/,$(LAYERS)) -o $@ $< $(STACKS_OBJ) $(TEST_LIBS)

$(O)/bench/%.bpf.o: bench/%.bpf.c Makefile
	@mkdir -p $(@D)
	$(call say,BPF,$<)
	$(Q)$(CLANG) -target bpf -D__bpf__ -D__TARGET_ARCH_$(ARCH) -mcpu=v3 -O2 -g -Wall -Wextra -Wno-unused-parameter \
		$(if $(filter 1,$(WERROR)),-Werror) -Isrc/core -Ibpf -MMD -MP -c -o $@ $<

.PHONY: bench bench-engine bench-trace bench-ui bench-stacks bench-go
bench: all $(BENCH_PROGS) $(O)/bench/ref.bpf.o
	$(Q)BUILD=$(O) CRITICAST=$(CURDIR)/$(O)/criticast bench/bench
bench-engine: all $(BENCH_PROGS)
	$(Q)$(O)/bench/engine
	$(Q)BUILD=$(O) CRITICAST=$(CURDIR)/$(O)/criticast bench/sched_peers
bench-ui: all
	$(Q)CRITICAST=$(CURDIR)/$(O)/criticast bench/ui
bench-trace: all $(O)/bench/trace $(O)/bench/seek
	$(Q)BUILD=$(O) CRITICAST=$(CURDIR)/$(O)/criticast bench/trace_peers
bench-stacks: all $(O)/bench/stacks
	$(Q)BUILD=$(O) CRITICAST=$(CURDIR)/$(O)/criticast bench/stack_peers
bench-go: all $(O)/bench/http_load $(O)/bench/trap
	$(Q)BUILD=$(O) CRITICAST=$(CURDIR)/$(O)/criticast bench/go
