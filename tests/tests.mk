# SPDX-License-Identifier: Apache-2.0
# Tests. A Criterion suite is every tests/unit/test_*.c (one program); everything else that can be
# run is listed in TESTS: exit 0 passed, 77 skipped, else failed, or its own closing line
# "N passed, N failed, N skipped" is added up.

UNIT_SRC := $(wildcard tests/unit/*.c)
UNIT_OBJ := $(patsubst %.c,$(O)/%.o,$(UNIT_SRC))
TEST_INC := $(addprefix -Isrc/,$(LAYERS)) -Itests -DCC_SRC_DIR='"$(CURDIR)"' \
	-DCC_GO_DIR='"$(abspath $(O))/tests/go"'

$(O)/tests/%.o: tests/%.c Makefile tests/tests.mk
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CFLAGS) -Wno-conversion $(TEST_INC) -DHAVE_BPF=$(BPF) -c -o $@ $<

# the ways a Go program is linked; without go its tests say that they were skipped
GO ?= go
GO_LINK_dwarf     :=
GO_LINK_strip     := -ldflags='-s -w'
GO_LINK_pie       := -buildmode=pie -ldflags='-s -w'
GO_LINK_extpie    := -tags external -buildmode=pie -ldflags='-s -w -linkmode=external'
GO_LINK_extstatic := -tags external -ldflags='-s -w -linkmode=external -extldflags=-static'
GO_ENV_arm64      := GOARCH=arm64 CGO_ENABLED=0 # read, never run
GO_KINDS := dwarf strip pie extpie extstatic arm64
GO_PROGS := $(if $(shell command -v $(GO) 2>/dev/null),$(GO_KINDS:%=$(O)/tests/go/waits-%))
$(O)/tests/go/waits-%: $(wildcard tests/go/waits/*) tests/tests.mk
	@mkdir -p $(@D)
	$(call say,GO,$@)
	$(Q)cd tests/go/waits && GOFLAGS=-buildvcs=false $(GO_ENV_$*) $(GO) build $(GO_LINK_$*) -o $(abspath $@) .

TEST_LIBS = -Wl,--start-group $(LIBS_OURS) -Wl,--end-group $(LIBS)

$(O)/tests/unit/unit: $(UNIT_OBJ) $(LIBS_OURS) | $(GO_PROGS)
	$(call say,LD,$@)
	$(Q)$(CC) $(SAN) -o $@ $(UNIT_OBJ) $(TEST_LIBS) -lcriterion

# one-file programs: drivers, tsan tests, loads for live tests
PROG_SRC := $(wildcard tests/oracle/*.c tests/tsan/*.c tests/live/*.c tests/tui/*.c tests/accuracy/*.c)
PROGS := $(patsubst %.c,$(O)/%,$(PROG_SRC))
$(O)/tests/%: $(O)/tests/%.o $(LIBS_OURS)
	$(call say,LD,$@)
	$(Q)$(CC) $(SAN) -o $@ $< $(TEST_LIBS) $(if $(findstring tests/tui/,$@),-lvterm)

# two libraries for rules_load: code as long, at the same place, that means other things
SWAP_a := -DROOM=1000 -DNAME=swap_a -DCALL=SYS_poll
SWAP_b := -DROOM=3000 -DNAME=swap_b -DCALL=SYS_nanosleep
SWAPS  := $(O)/tests/live/lib/swap_a.so $(O)/tests/live/lib/swap_b.so
$(O)/tests/live/lib/swap_%.so: tests/live/lib/swap.c Makefile tests/tests.mk
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) -std=gnu11 -D_GNU_SOURCE -O2 -g -fPIC -shared $(SWAP_$*) -o $@ $<

# scripts: *.test in these folders, run with CRITICAST and BUILD set
TEST_SCRIPTS := $(sort $(wildcard tests/oracle/*.test tests/tui/*.test tests/cli/*.test tests/live/*.test))
TSAN_PROGS := $(patsubst tests/tsan/%.c,$(O)/tests/tsan/%,$(wildcard tests/tsan/*.c))

.PRECIOUS: $(O)/tests/%.o
.PHONY: test test-deps test-run test-build check-asan check-tsan
test-deps:
	$(Q)scripts/deps test
test: test-deps
	$(Q)$(MAKE) --no-print-directory test-run
test-build: all $(O)/tests/unit/unit $(PROGS) $(SWAPS)
test-run: test-build
	$(Q)BUILD=$(O) CRITICAST=$(abspath $(O)/criticast) tests/run $(O)/tests/unit/unit $(TEST_SCRIPTS) $(TSAN_PROGS)

# whose work goroutines do, judged by a server's own word
.PHONY: eval
eval: all
	$(Q)BUILD=$(O) CRITICAST=$(abspath $(O)/criticast) scripts/eval

# requests against what servers, logs and clients say (ROWS="nginx redis": only these); whether stated
# confidence is earned (WRITE=1: the rates of CC_EVIDENCE become what was measured)
.PHONY: accuracy calibration
accuracy: all $(O)/tests/accuracy/ours
	$(Q)scripts/deps accuracy
	$(Q)BUILD=$(O) CRITICAST=$(abspath $(O)/criticast) tests/accuracy/accuracy $(ROWS)
calibration: all $(O)/tests/live/shapes $(O)/tests/live/lockstorm $(O)/tests/live/locks
	$(Q)scripts/deps accuracy
	$(if $(WRITE),$(Q)BUILD=$(O) CRITICAST=$(abspath $(O)/criticast) tests/accuracy/calibration --write)
	$(if $(WRITE),$(Q)$(MAKE) --no-print-directory all)
	$(Q)BUILD=$(O) CRITICAST=$(abspath $(O)/criticast) tests/accuracy/calibration

# with sanitizers: what our own code goes through; fewer schedules, and of the live tests those
# that judge what is told, not how fast; stall.test and forms.test (saving in a forked process) are about the heap that their allocator replaces. An O given on the command line gets a folder beside it.
ASAN_SCRIPTS := $(filter-out tests/oracle/truth.test tests/tui/stall.test tests/tui/forms.test,$(filter tests/oracle/% tests/tui/% tests/cli/%,$(TEST_SCRIPTS))) \
	tests/live/answers_replay.test
SAN_MAKE = $(MAKE) --no-print-directory VARIANT=$(1) $(if $(filter command line,$(origin O)),O=$(O)-$(1))
check-asan:
	$(Q)$(call SAN_MAKE,asan) asan-run
check-tsan:
	$(Q)$(call SAN_MAKE,tsan) tsan-run
.PHONY: asan-run tsan-run
asan-run: test-build
	$(Q)BUILD=$(O) CRITICAST=$(abspath $(O)/criticast) SCHEDULES=60 UI_FUZZ_STEPS=100000 UI_FUZZ_SEEDS="1 2 3" ASAN_OPTIONS=detect_leaks=1 \
		LSAN_OPTIONS=suppressions=$(CURDIR)/tests/lsan.supp:print_suppressions=0 \
		tests/run $(O)/tests/unit/unit $(ASAN_SCRIPTS)
tsan-run: $(TSAN_PROGS)
	$(Q)BUILD=$(O) tests/run $(TSAN_PROGS)

# a day of 10,000 events/s through the engine, which says where it is each hour of it; `make test` has ten
# minutes. And fifty million walks; `make test` has two.
.PHONY: soak
soak: all $(O)/tests/oracle/soak $(O)/tests/oracle/walk_driver
	$(Q)BUILD=$(O) WALKS=5000 tests/oracle/diff_identity.test
	$(Q)BUILD=$(O) SOAK_HOURS=24 tests/oracle/soak.test
