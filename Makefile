# SPDX-License-Identifier: Apache-2.0
# criticast. `make help` lists the targets. V=1 shows commands, BPF=0 builds without live tracing.
MAKEFLAGS += --no-builtin-rules
.DELETE_ON_ERROR:
.SUFFIXES:

VARIANT ?= release
BPF     ?= 1
V       ?= 0
WERROR  ?= 0
PREFIX  ?= /usr/local
CC      := $(if $(filter default,$(origin CC)),gcc,$(CC))
CLANG   ?= clang
BPFTOOL ?= $(or $(shell command -v bpftool 2>/dev/null),/usr/sbin/bpftool)
O       := build/$(VARIANT)$(if $(filter 0,$(BPF)),-nobpf)
Q       := $(if $(filter 1,$(V)),,@)
say      = $(if $(filter 1,$(V)),,@printf '  %-8s %s\n' $(1) $(2))

# ---- flags --------------------------------------------------------------------------------------
WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith \
	-Wwrite-strings -Wvla -Wundef -Wtype-limits -Wformat=2 -Wimplicit-fallthrough \
	-Wconversion -Wno-sign-conversion $(if $(filter 1,$(WERROR)),-Werror)
SAN_asan := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
SAN_tsan := -fsanitize=thread
# not pointer-overflow: it takes NULL + 0, the end of an empty array, for one
SAN_fuzz := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize=pointer-overflow -fno-sanitize-recover=undefined
OPT_release := -O2
OPT_asan := -O1
OPT_tsan := -O1
OPT_fuzz := -O1
SAN    := $(SAN_$(VARIANT))
CFLAGS ?= $(OPT_$(VARIANT)) -g
WARN += $(if $(findstring clang,$(CC)),-Wno-unknown-attributes) # noclone, optimize: gcc's
ALL_CFLAGS = -std=gnu11 -D_GNU_SOURCE $(WARN) $(CFLAGS) $(SAN) -MMD -MP
LIBS   := -lelf -ldw -liberty -lunwind-x86_64 -lncursesw -ltinfo -lcjson -ldeflate -lz -lcap -lpthread -lm \
	$(if $(filter 1,$(BPF)),-lbpf)

# ---- layers: what each may include is what it gets ----------------------------------------------
LAYERS := core trace export symbol tui $(if $(filter 1,$(BPF)),bpf_loader) cli
INC_core       :=
INC_trace      := core
INC_export     := core
INC_symbol     := core
INC_tui        := core
INC_bpf_loader := core
INC_cli        := core trace export symbol tui $(if $(filter 1,$(BPF)),bpf_loader)
INC_dirs        = $(addprefix -Isrc/,$(1) $(INC_$(1)))
DEF_cli        := -DHAVE_BPF=$(BPF)
SYS_bpf_loader  = -isystem $(O)/bpf

objs_of = $(patsubst src/%.c,$(O)/%.o,$(wildcard src/$(1)/*.c))
lib_of  = $(O)/lib$(1).a
LIBS_OURS := $(foreach l,cli tui bpf_loader symbol trace export core,$(if $(filter $(l),$(LAYERS)),$(call lib_of,$(l))))
SKEL := $(O)/bpf/criticast.skel.h

.PHONY: all build/criticast
all: $(if $(filter release,$(VARIANT)),build/criticast) $(O)/criticast check-layers

# the program lies at build/criticast, never one with sanitizers; the link says nothing of its age
build/criticast: $(O)/criticast
	@mkdir -p $(@D)
	$(Q)ln -sfnr $< $@

$(O)/criticast: $(O)/main.o $(LIBS_OURS)
	$(call say,LD,$@)
	$(Q)$(CC) $(SAN) $(LDFLAGS) -o $@ $(O)/main.o -Wl,--start-group $(LIBS_OURS) -Wl,--end-group $(LIBS)

$(O)/main.o: src/main.c Makefile
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CFLAGS) $(call INC_dirs,cli) $(DEF_cli) -c -o $@ $<

define LAYER_RULES
$(O)/$(1)/%.o: src/$(1)/%.c Makefile $(if $(filter bpf_loader,$(1)),$(SKEL))
	@mkdir -p $$(@D)
	$$(call say,CC,$$<)
	$$(Q)$$(CC) $$(ALL_CFLAGS) $(call INC_dirs,$(1)) $(DEF_$(1)) $(SYS_$(1)) -c -o $$@ $$<
$(call lib_of,$(1)): $(call objs_of,$(1))
	$$(call say,AR,$$@)
	$$(Q)rm -f $$@; ar rcs $$@ $$^
endef
$(foreach l,$(LAYERS),$(eval $(call LAYER_RULES,$(l))))

# the table of Go's offsets is taken into it as it is
$(O)/symbol/go_layout.o: src/symbol/go_offsets.json

# and so are the themes
$(O)/tui/theme_shipped.o: $(wildcard themes/*.theme)

# ---- kernel programs ----------------------------------------------------------------------------
BPF_SRC := $(wildcard bpf/*.bpf.c)
BPF_OBJ := $(patsubst bpf/%.bpf.c,$(O)/bpf/%.bpf.o,$(BPF_SRC))
ARCH := $(shell uname -m | sed 's/x86_64/x86/; s/aarch64/arm64/')

$(O)/bpf/%.bpf.o: bpf/%.bpf.c Makefile
	@mkdir -p $(@D)
	$(call say,BPF,$<)
	$(Q)$(CLANG) -target bpf -D__bpf__ -D__TARGET_ARCH_$(ARCH) -mcpu=v3 -O2 -g -Wall -Wextra -Wno-unused-parameter \
		$(if $(filter 1,$(WERROR)),-Werror) -Isrc/core -Ibpf -MMD -MP -c -o $@ $<
$(O)/bpf/criticast.o: $(BPF_OBJ)
	$(call say,BPFLINK,$@)
	$(Q)$(BPFTOOL) gen object $@ $(BPF_OBJ)
$(SKEL): $(O)/bpf/criticast.o
	$(call say,SKEL,$@)
	$(Q)$(BPFTOOL) gen skeleton $< name criticast > $@

# ---- boundaries ---------------------------------------------------------------------------------
.PHONY: check-layers
check-layers: $(call lib_of,core)
	$(call say,CHECK,layers)
	$(Q)scripts/check-layers $<

-include $(shell find $(O) -name '*.d' 2>/dev/null)

# ---- tests --------------------------------------------------------------------------------------
include tests/tests.mk
include tests/fuzz/fuzz.mk
include bench/bench.mk

# ---- on a fresh machine -------------------------------------------------------------------------
.PHONY: deps demo run
deps:
	$(Q)scripts/deps build
demo: deps
	$(Q)$(MAKE) --no-print-directory all
	$(Q)build/criticast demo
run: all
	$(Q)$(O)/criticast $(ARGS)

# ---- pictures -----------------------------------------------------------------------------------
.PHONY: screens
screens: all
	$(Q)CRITICAST=$(O)/criticast scripts/screens

# ---- care ---------------------------------------------------------------------------------------
C_FILES := $(shell git ls-files -co --exclude-standard '*.c' '*.h' 2>/dev/null)
.PHONY: lint format install clean help
lint:
	$(Q)scripts/lint
format:
	$(Q)clang-format -i $(C_FILES)
install: all
	install -D -m 755 $(O)/criticast $(DESTDIR)$(PREFIX)/bin/criticast
	install -D -m 644 man/criticast.1 $(DESTDIR)$(PREFIX)/share/man/man1/criticast.1
	install -d $(DESTDIR)$(PREFIX)/share/criticast/themes
	install -m 644 testdata/demo.criticast $(DESTDIR)$(PREFIX)/share/criticast/
	install -m 644 themes/*.theme $(DESTDIR)$(PREFIX)/share/criticast/themes/
clean:
	$(Q)rm -rf build
help:
	@echo 'all           build/criticast (BPF=0: without live tracing)'
	@echo 'demo          install what is missing, build, show criticast on its demo server'
	@echo 'run ARGS=...  build and start criticast'
	@echo 'test          install what tests need, build, run every test'
	@echo 'check-asan    the tests under ASan and UBSan'
	@echo 'check-tsan    the threads under TSan'
	@echo 'fuzz          libFuzzer on every reader, FUZZ_TIME=60 s or FUZZ_RUNS=N each; check-fuzz: 10 s'
	@echo 'bench         costs, side by side with peers in one run'
	@echo 'eval          whose work goroutines do, judged by a server that knows'
	@echo 'bench-engine  speed of the engine'
	@echo 'accuracy      requests against logs and clocks of nginx, redis, memcached, haproxy, node'
	@echo 'calibration   whether stated confidence is earned, by bucket'
	@echo 'soak          a day of events through the engine: memory stays flat'
	@echo 'bench-trace   size and speed of recordings beside perf.data and trace.dat'
	@echo 'bench-stacks  stacks of four servers: completeness and cost, beside libunwind and libdwfl'
	@echo 'bench-go      CPU per request of Go servers by tier, and what each probe costs'
	@echo 'bench-ui      what the screens cost, beside htop, btop and top'
	@echo 'screens       the pictures in docs/screens, from the screens themselves'
	@echo 'lint format install clean'
