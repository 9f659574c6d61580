/* SPDX-License-Identifier: Apache-2.0 */
#include "code_row.h"
#include "cfi.h"
#include "rule.h"
#include "x86_step.h"

#include <string.h>

#define INSNS_MAX 1024 /* on all ways together */
#define WAYS_MAX 32    /* to be gone yet */
#define STACK_MAX (1 << 20)

/* Registers as DWARF has them, by the number they have in instructions. */
static const uint8_t regs[16] = { 0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15 };

#define KEPT (1u << 3 | 1u << CFI_FP | 0xfu << 12) /* that a callee gives back as they were */

struct way {
	uint64_t at;
	bool branched, called; /* it was taken at a branch, and there was a call since */
	bool fell; /* the instruction before was a call: perhaps of a function that never returns */
	bool on_fp;     /* the stack pointer is known by the frame pointer of the start, */
	int32_t off;    /* or by its own */
	int32_t pushed; /* below this it is written on this way */
	bool own_fp;    /* the frame pointer was set on this way, and is this: */
	bool own_on_fp;
	int32_t own_off;
	uint32_t popped;    /* bit per register, as DWARF has them; */
	int32_t slot[16];   /* which lay there, by the same */
	uint32_t popped_fp; /* these by the frame pointer */
};

/* How far ways that come to a return can be trusted. One goes straight on. What lies aside of it
 * and calls is often the end of the function, __stack_chk_fail() or abort(): then it seems to go on
 * in the next one. */
enum { STRAIGHT, ASIDE, CALLS, TRUSTS };

struct walk {
	struct elf_file *f;
	struct way ways[WAYS_MAX], end[TRUSTS]; /* end: at the first return of each kind */
	size_t way_cnt, insn_cnt;
	uint64_t seen[INSNS_MAX * 2]; /* hash; 0: empty */
	bool ended[TRUSTS], differs[TRUSTS];
};

/* False: somebody has been there. */
static bool first_time(struct walk *w, uint64_t at)
{
	size_t i = (size_t)mix64(at) & (ARRAY_SIZE(w->seen) - 1);

	while (w->seen[i] && w->seen[i] != at)
		i = (i + 1) & (ARRAY_SIZE(w->seen) - 1);
	if (w->seen[i] || w->insn_cnt == INSNS_MAX)
		return false;
	w->seen[i] = at;
	w->insn_cnt++;
	return true;
}

static bool is_code(const struct elf_file *f, uint64_t vaddr)
{
	const struct elf_seg *s = elf_file_seg(f, vaddr);

	return s && s->exec && vaddr;
}

static void pop(struct way *y, uint8_t reg)
{
	uint32_t bit = KEPT & 1u << reg; /* others are only taken off */

	if ((!y->on_fp && y->off < y->pushed) || y->popped & bit)
		bit = 0; /* it was pushed on this way, or by a function that this one ends with */
	if (bit) {
		y->popped |= bit;
		y->popped_fp |= y->on_fp ? bit : 0;
		y->slot[reg] = y->off;
	}
	y->off += 8;
	y->own_fp &= reg != CFI_FP;
}

/* The stack pointer becomes the frame pointer + @by. False: that is not known. */
static bool to_fp(struct way *y, int32_t by)
{
	if (y->own_fp) {
		y->on_fp = y->own_on_fp;
		y->off = y->own_off + by;
		return true;
	}
	y->on_fp = true;
	y->off = by;
	return !(y->popped >> CFI_FP & 1); /* else it is another one by now */
}

/* By the same register; else nobody knows whether they agree. */
static bool disagree(const struct way *a, const struct way *b)
{
	return a->on_fp == b->on_fp && a->off != b->off;
}

static void take_end(struct walk *w, const struct way *y)
{
	int trust = !y->branched ? STRAIGHT : y->called ? CALLS : ASIDE;

	if (!w->ended[trust])
		w->end[trust] = *y;
	else
		w->differs[trust] |= disagree(&w->end[trust], y);
	w->ended[trust] = true;
}

/* What follows on a call looks like a function's beginning: that call did not return. */
static bool begins_function(const struct walk *w, const struct way *y, const uint8_t *code,
			    size_t len)
{
	static const uint8_t endbr[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	bool pushes = code[0] == 0x55 || code[0] == 0x53 ||
		      (len > 1 && code[0] == 0x41 && code[1] >= 0x54 && code[1] <= 0x57);
	bool nothing =
		code[0] == 0xcc || code[0] == 0x90 ||
		(len > 1 && code[0] == 0x66 &&
		 (code[1] == 0x90 || code[1] == 0x2e || code[1] == 0x66 || code[1] == 0x0f)) ||
		(len > 1 && code[0] == 0x0f && code[1] == 0x1f);

	return pushes || nothing || (len >= sizeof(endbr) && !memcmp(code, endbr, sizeof(endbr))) ||
	       elf_file_begins(w->f, y->at);
}

/* One instruction. False: the way ends here. */
static bool go_on(struct walk *w, struct way *y)
{
	uint8_t code[X86_INSN_MAX];
	ssize_t n = elf_file_read_at(w->f, y->at, code, sizeof(code));
	struct x86_step s = n > 0 ? x86_step(code, (size_t)n) : (struct x86_step){ 0 };
	uint64_t next = y->at + s.len, to = next + (uint64_t)(int64_t)s.to;

	if (n <= 0 || (y->fell && begins_function(w, y, code, (size_t)n)))
		return false;
	y->at = next;
	y->fell = s.kind == X86_CALL;
	y->called |= y->fell;
	switch ((enum x86_kind)s.kind) {
	case X86_UNKNOWN:
	case X86_STOP:
		return false;
	case X86_PLAIN:
	case X86_CALL:
		return true;
	case X86_MOVE:
		if (s.by < 0)
			y->pushed = CC_MAX(y->pushed, y->off);
		y->off += s.by;
		return y->off > -STACK_MAX && y->off < STACK_MAX;
	case X86_POP:
		pop(y, regs[s.reg]);
		return true;
	case X86_SET_FP:
		y->own_fp = true;
		y->own_on_fp = y->on_fp;
		y->own_off = y->off;
		return true;
	case X86_TO_FP:
		return to_fp(y, s.by);
	case X86_LEAVE:
		if (!to_fp(y, 0))
			return false;
		pop(y, CFI_FP);
		return true;
	case X86_BRANCH:
		if (w->way_cnt < WAYS_MAX && is_code(w->f, to)) {
			w->ways[w->way_cnt] = *y;
			w->ways[w->way_cnt].branched = true;
			w->ways[w->way_cnt].called = false;
			w->ways[w->way_cnt++].at = to;
		}
		return true;
	case X86_JUMP:
		y->at = to;
		return is_code(w->f, to);
	case X86_RETURN:
		take_end(w, y);
		return false;
	}
	return false;
}

static void add_rule(struct cfi_row *row, const struct way *end, uint8_t reg, int32_t cfa_off)
{
	/* a place that is known by another register than the CFA is none */
	bool known = (end->popped_fp >> reg & 1) == end->on_fp;

	row->rules[row->cnt++] = (struct cfi_rule){ .reg = reg,
						    .kind = known ? CFI_SAVED : CFI_UNDEFINED,
						    .off = end->slot[reg] - cfa_off };
}

static void fill_row(struct cfi_row *row, const struct way *end)
{
	int32_t cfa_off = end->off + 8;

	row->guessed = true;
	row->cfa = (struct cfi_rule){ .kind = CFI_REG,
				      .from = end->on_fp ? CFI_FP : CFI_SP,
				      .off = cfa_off };
	row->cnt = 0;
	for (uint8_t reg = 0; reg < ARRAY_SIZE(regs); reg++) {
		if (reg == CFI_SP)
			row->rules[row->cnt++] =
				(struct cfi_rule){ .reg = CFI_SP, .kind = CFI_CFA_VALUE };
		else if (end->popped >> reg & 1)
			add_rule(row, end, reg, cfa_off);
	}
	row->rules[row->cnt++] = (struct cfi_rule){ .reg = CFI_RA, .kind = CFI_SAVED, .off = -8 };
}

/* The return to go by. NULL: there is none, or it is not sure which. */
static const struct way *best_end(const struct walk *w)
{
	for (int i = 0; i < TRUSTS; i++) {
		if (!w->ended[i])
			continue;
		if (w->differs[i] ||
		    (i == STRAIGHT && w->ended[ASIDE] &&
		     (w->differs[ASIDE] || disagree(&w->end[STRAIGHT], &w->end[ASIDE]))))
			return NULL;
		return &w->end[i];
	}
	return NULL;
}

bool code_row(struct elf_file *f, uint64_t vaddr, bool called, struct cfi_row *row)
{
	struct walk w = { .f = f, .way_cnt = 1 };
	const struct way *end;

	if (f->machine != CFI_MACHINE_X86_64 || !is_code(f, vaddr))
		return false;
	w.ways[0].at = vaddr;
	w.ways[0].fell = called;
	while (w.way_cnt) {
		struct way y = w.ways[--w.way_cnt];

		while (first_time(&w, y.at) && go_on(&w, &y))
			;
	}
	end = best_end(&w);
	if (!end || end->off < 0 || (end->on_fp ? end->off != 8 : called && end->off % 16 != 8))
		return false; /* a frame pointer lies there; the stack is aligned for calls */
	fill_row(row, end);
	return true;
}

bool code_called(struct elf_file *f, uint64_t vaddr, struct elf_file *caller, uint64_t ret_at)
{
	uint8_t code[8], stub[8];
	uint64_t to;

	if (elf_file_read_at(caller, ret_at - sizeof(code), code, sizeof(code)) != sizeof(code))
		return false;
	for (size_t len = 2; len < sizeof(code); len++) {
		struct x86_step s = x86_step(code + sizeof(code) - len, len);

		if (s.kind != X86_CALL || s.len != len)
			continue;
		to = ret_at + (uint64_t)(int64_t)s.to;
		if (!s.has_to || (f == caller && is_code(f, to) && to <= vaddr))
			return true;
		/* through a stub, or to a function that ended with a jump to this one */
		if (elf_file_read_at(caller, to, stub, sizeof(stub)) == sizeof(stub) &&
		    (f == caller || memmem(stub, sizeof(stub), "\xff\x25", 2)))
			return true;
	}
	return false;
}
