/* SPDX-License-Identifier: Apache-2.0 */
#include "go_sites.h"
#include "elf_file.h"
#include "go_insn.h"
#include "go_tab.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CODE_MAX 96      /* bytes of a function that are looked at */
#define CALLS_MAX 16384u /* ... for a call */
#define CALL_LEN 5       /* e8, and how far it is from behind it */
#define NOP_LEN 5
#define NEAR (2u << 20) /* the linker keeps what is of one package together */

static bool code_is_push(const uint8_t *code, size_t at, size_t len)
{
	return at < len && go_insn_x86(code + at, len - at).probe == GO_INSN_PUSH;
}

/* Go's way to begin (cmd/internal/obj/x86): [lea -n(%rsp),%r12;] cmp 0x10(%r14),%rsp; jbe grow;
 * then, from 1.21, push %rbp; mov %rsp,%rbp; sub $n,%rsp, and before that sub $n,%rsp; mov
 * %rbp,n-8(%rsp); lea n-8(%rsp),%rbp. Functions that need little stack have no check. All up to the
 * first branch is passed once, at every call. */
void go_site_x86(const uint8_t *code, size_t len, struct go_site *ret)
{
	bool framed = false, checked = false;
	size_t at = 0;

	*ret = (struct go_site){ .insn = GO_INSN_STEP, .args = true };
	while (at < len) {
		struct go_op op = go_insn_x86(code + at, len - at);

		if (!op.len || !op.keeps_args || op.leaves)
			return;
		/* behind the check there may be a push, which is not met twice */
		bool grows = op.probe == GO_INSN_JCC && checked && !framed;

		if (op.probe != GO_INSN_STEP && !(grows && code_is_push(code, at + op.len, len))) {
			ret->delta = (uint16_t)at;
			ret->insn = op.probe;
			ret->framed = framed;
			ret->repeats = grows;
			return;
		}
		framed |= op.stack_moves;
		checked |= op.checks_stack;
		at += op.len;
	}
}

/* ldr 16(x28),x16; [sub $n,sp,x17;] cmp sp,x16; b.ls grow. */
void go_site_arm64(const uint8_t *code, size_t len, struct go_site *ret)
{
	*ret = (struct go_site){ .insn = GO_INSN_STEP, .args = true };
	for (size_t at = 0; at + 4 <= CC_MIN(len, 24); at += 4) {
		uint32_t op;

		memcpy(&op, code + at, sizeof(op));
		if ((op & 0xff00001f) == 0x54000009) { /* b.ls */
			ret->delta = (uint16_t)at;
			ret->insn = GO_INSN_JCC;
			ret->repeats = true;
			return;
		}
		if (!at && op != 0xf9400b90) /* ldr 16(x28),x16 */
			return;
	}
}

static bool site_of(struct elf_file *f, const struct go_func *fn, struct go_site *ret)
{
	uint8_t code[CODE_MAX];
	const struct elf_seg *s = elf_file_seg(f, fn->entry);
	size_t want = CC_MIN(fn->end - fn->entry, sizeof(code));

	if (!s || !s->exec || fn->entry - s->vaddr >= s->filesz ||
	    elf_file_read_at(f, fn->entry, code, want) != (ssize_t)want)
		return false;
	if (f->machine == EM_X86_64)
		go_site_x86(code, want, ret);
	else
		go_site_arm64(code, want, ret);
	ret->entry = fn->entry;
	ret->size = (uint32_t)CC_MIN(fn->end - fn->entry, UINT32_MAX);
	ret->off = s->off + (fn->entry - s->vaddr) + ret->delta;
	return true;
}

/* ---- calls ---------------------------------------------------------------------------------- */

size_t go_site_call_x86(const uint8_t *code, size_t len, uint64_t at, uint64_t to, unsigned int nth)
{
	for (size_t i = 0; i + CALL_LEN <= len; i++) {
		int32_t far;

		if (code[i] != 0xe8)
			continue;
		memcpy(&far, code + i + 1, sizeof(far));
		if (at + i + CALL_LEN + (uint64_t)(int64_t)far == to && !nth--)
			return i;
	}
	return len;
}

bool go_site_nop_x86(const uint8_t *code, size_t at)
{
	static const uint8_t nop[NOP_LEN] = { 0x0f, 0x1f, 0x44, 0, 0 };
	size_t i = 0;

	if (at < NOP_LEN || memcmp(code + at - NOP_LEN, nop, NOP_LEN))
		return false;
	/* what follows on from the function's begin, instruction by instruction, is no constant */
	while (i < at - NOP_LEN) {
		struct go_op op = go_insn_x86(code + i, at - i);

		if (!op.len)
			return false;
		i += op.len;
	}
	return i == at - NOP_LEN;
}

/* The @nth call of @to in @fn. */
static bool call_of(struct elf_file *f, const struct go_func *fn, uint64_t to, unsigned int nth,
		    struct go_site *ret)
{
	const struct elf_seg *s = elf_file_seg(f, fn->entry);
	size_t len = CC_MIN(fn->end - fn->entry, CALLS_MAX), at = len;
	bool nop = false;
	uint8_t *code;

	/* where arm64 keeps a function's first argument its frame does not tell */
	if (f->machine != EM_X86_64 || !s || !s->exec || fn->entry - s->vaddr >= s->filesz)
		return false;
	code = malloc(len);
	if (code && elf_file_read_at(f, fn->entry, code, len) == (ssize_t)len)
		at = go_site_call_x86(code, len, fn->entry, to, nth);
	nop = at < len && go_site_nop_x86(code, at);
	free(code);
	if (at == len)
		return false;
	at -= nop ? NOP_LEN : 0;
	*ret = (struct go_site){
		.off = s->off + (fn->entry - s->vaddr) + at,
		.entry = fn->entry,
		.size = (uint32_t)CC_MIN(fn->end - fn->entry, UINT32_MAX),
		.delta = (uint16_t)at,
		.insn = nop ? GO_INSN_NOP5 : GO_INSN_CALL,
		.args = true,
		.framed = true,
	};
	return true;
}

int go_sites_find(struct elf_file *f, struct go_tab *tab, struct go_site *ret)
{
	static const struct {
		unsigned int site, in, of, nth;
	} calls[] = {
#define X(id, in, of, nth, name) { GO_FN_CALL_##id, GO_FN_##in, GO_FN_##of, nth },
		GO_CALLS(X)
#undef X
	};
	const char *names[GO_FN_CNT];
	struct go_func fns[GO_FN_CNT];
	int err;

	for (unsigned int i = 0; i < GO_FN_CNT; i++)
		names[i] = go_func_name(i);
	err = go_tab_by_name(tab, names, GO_FN_CNT, fns);
	for (unsigned int i = 0; i < GO_FN_CNT && !err; i++) {
		if (!fns[i].entry || !site_of(f, &fns[i], &ret[i]))
			ret[i] = (struct go_site){ 0 };
	}
	for (size_t i = 0; i < ARRAY_SIZE(calls) && !err; i++) {
		const struct go_func *in = &fns[calls[i].in], *of = &fns[calls[i].of];

		if (!in->entry || !of->entry ||
		    !call_of(f, in, of->entry, calls[i].nth, &ret[calls[i].site]))
			ret[calls[i].site] = (struct go_site){ 0 };
	}
	return err;
}

/* ---- who makes a goroutine ready ------------------------------------------------------------ */

/* ready() and what ends in it, whose calls are probed: a nop before one of them is met as often as
 * ready() by that way. From 1.21 on the compiler puts goready() into its callers, and then only
 * calls of ready() itself are looked at. */
static const struct {
	const char *name;
	uint8_t arg;
	const char *within; /* which calls another one of these, and need not be probed twice */
} readying[] = {
	{ "runtime.ready", GO_READY_G, NULL },
	{ "runtime.goready", GO_READY_G, "runtime.goready.func1" },
	{ "runtime.readyWithTime", GO_READY_SUDOG, "runtime.readyWithTime" },
	{ "runtime.send", GO_READY_SEND, "runtime.send" },
};

/* Functions that are known to call one of them, so that what looks like a call is one. */
static bool makes_ready(const char *name)
{
	static const char *const names[] = {
		"runtime.gcSweep",
		"runtime.gcFlushBgCredit",
		"runtime.resumeG",
		"runtime.findRunnable",
		"runtime.findrunnable",
		"runtime.chansend",
		"runtime.recv",
		"runtime.selectgo",
		"runtime.closechan",
		"runtime.semrelease1",
		"runtime.goroutineReady",
		"runtime.netpolldeadlineimpl",
		"internal/poll.runtime_pollSetDeadline",
		"internal/poll.runtime_pollUnblock",
		"sync.runtime_notifyListNotifyAll",
		"sync.runtime_notifyListNotifyOne",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

/* Code of the runtime, around ready(), and what in it is probed. */
struct ready_scan {
	struct go_tab *tab;
	const uint8_t *code;
	uint64_t addr, off; /* where it lies, as linked and in the file */
	size_t len;
	struct go_func fns[ARRAY_SIZE(readying)]; /* entry 0: its calls are not probed */
};

static bool is_within(const struct ready_scan *s, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(readying); i++)
		if (s->fns[i].entry && readying[i].within && !strcmp(name, readying[i].within))
			return true;
	return false;
}

/* Adds the call at s->code + @at, of readying[@which]. Says whether it is sure. */
static bool ready_add(const struct ready_scan *s, size_t at, size_t which, struct go_ready *ret)
{
	struct go_func fn;
	char name[64];

	if (!go_tab_func(s->tab, s->addr + at, &fn) || fn.entry < s->addr)
		return false;
	const uint8_t *begin = s->code + (fn.entry - s->addr);
	bool nop = go_site_nop_x86(begin, (size_t)(s->code + at - begin));

	go_tab_name(s->tab, fn.name, name, sizeof(name));
	if (is_within(s, name))
		return true;
	if (ret->cnt == GO_READY_MAX || (!nop && !makes_ready(name)))
		return false;
	ret->at[ret->cnt++] = (struct go_ready_at){
		.off = s->off + at - (nop ? NOP_LEN : 0),
		.arg = readying[which].arg,
		.nop = nop,
	};
	ret->nops += nop;
	return true;
}

/* Adds all calls of readying[@which]. Says whether all are sure. */
static bool ready_calls(const struct ready_scan *s, size_t which, struct go_ready *ret)
{
	uint64_t to = s->fns[which].entry;
	size_t at = 0;

	while (to) {
		at += go_site_call_x86(s->code + at, s->len - at, s->addr + at, to, 0);
		if (at >= s->len)
			break;
		if (!ready_add(s, at, which, ret))
			return false;
		at += CALL_LEN;
	}
	return true;
}

int go_sites_ready(struct elf_file *f, struct go_tab *tab, const struct go_site *ready,
		   struct go_ready *ret)
{
	const struct elf_seg *seg = elf_file_seg(f, ready->entry);
	const char *names[ARRAY_SIZE(readying)];
	struct ready_scan s = { .tab = tab };
	int err;

	*ret = (struct go_ready){ 0 };
	if (f->machine != EM_X86_64 || !ready->off || !seg || !seg->exec)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		names[i] = readying[i].name;
	err = go_tab_by_name(tab, names, ARRAY_SIZE(names), s.fns);
	if (err)
		return err;
	for (size_t i = 2; i < ARRAY_SIZE(readying) && !s.fns[1].entry; i++)
		s.fns[i].entry = 0;
	s.addr = ready->entry - CC_MIN(ready->entry - seg->vaddr, (uint64_t)NEAR);
	s.off = seg->off + (s.addr - seg->vaddr);
	s.len = CC_MIN(seg->vaddr + seg->filesz - s.addr, (uint64_t)2 * NEAR);
	uint8_t *code = malloc(s.len);

	if (!code)
		return -ENOMEM;
	s.code = code;
	bool sure = elf_file_read_at(f, s.addr, code, s.len) == (ssize_t)s.len;

	for (size_t i = 0; i < ARRAY_SIZE(readying) && sure; i++)
		sure = ready_calls(&s, i, ret);
	free(code);
	if (!sure || !ret->nops)
		*ret = (struct go_ready){ 0 };
	return 0;
}

int go_sites_handlers(struct go_tab *tab, struct go_target *t)
{
	struct go_func fns[GO_BY_NAME_MAX];
	size_t cnt;
	int err = go_tab_by_match(tab, go_names_handler, fns, &cnt);

	t->handler_cnt = cnt > GO_BY_NAME_MAX ? GO_HANDLERS_MAX + 1 : 0;
	for (size_t i = 0; i < cnt && !err && t->handler_cnt <= GO_HANDLERS_MAX; i++) {
		if (!fns[i].entry)
			continue;
		if (t->handler_cnt < GO_HANDLERS_MAX)
			t->handlers[t->handler_cnt] = fns[i].entry;
		t->handler_cnt++;
	}
	return err;
}
