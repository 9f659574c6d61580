# SPDX-License-Identifier: Apache-2.0
# Benchmarks: figures, never gates.
BENCH_SRC := $(wildcard bench/*.c)
BENCH_PROGS := $(patsubst bench/%.c,$(O)/bench/%,$(BENCH_SRC))
$(O)/bench/%: bench/%.c $(LIBS_OURS) Makefile
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CFLAGS) -Wno-conversion $(addprefix -Isrc/,$(LAYERS)) -o $@ $< $(TEST_LIBS)

.PHONY: bench bench-engine
bench: all $(BENCH_PROGS)
	$(Q)BUILD=$(O) CRITICAST=$(CURDIR)/$(O)/criticast bench/bench
bench-engine: all $(BENCH_PROGS)
	$(Q)$(O)/bench/engine
