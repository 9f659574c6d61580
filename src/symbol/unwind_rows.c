/* SPDX-License-Identifier: Apache-2.0 */
#include "cfi.h"
#include "cfi_eval.h"
#include "cfi_rule.h"
#include "code_row.h"
#include "go_tab.h"
#include "unwinder.h"

#include <errno.h>
#include <stdlib.h>

struct rows {
	struct unwinder base;
	struct file_cache *files;
};

struct state { /* of one unwind */
	struct rows *u;
	struct maps *maps;
	const struct unwind_in *in;
	const struct cfi_arch *arch;
	uint64_t ip; /* of the frame being left, and its registers */
	uint64_t regs[CFI_REGS];
	uint32_t valid; /* bit per register */
	bool cut;       /* needed stack that was not taken */
	bool exact; /* the ip is where it stands, not behind a call: innermost and interrupted */
};

static bool read_stack(struct state *s, uint64_t addr, uint64_t *ret)
{
	uint64_t at = addr - s->in->sp;

	if (addr < s->in->sp || s->in->stack_len < sizeof(*ret) ||
	    at > s->in->stack_len - sizeof(*ret)) {
		s->cut |= addr >= s->in->sp;
		return false;
	}
	memcpy(ret, s->in->stack + at, sizeof(*ret));
	return true;
}

static bool get_reg(const struct state *s, unsigned int reg, uint64_t *ret)
{
	if (reg >= CFI_REGS || !(s->valid >> reg & 1))
		return false;
	*ret = s->regs[reg];
	return true;
}

/* Of one that goes by its number in DWARF. */
static bool eval_reg(void *ctx, unsigned int reg, struct cfi_value *ret)
{
	const struct state *s = ctx;

	ret->base = CFI_NUMBER;
	return reg < CFI_DWARF_REGS && s->arch->place[reg] >= 0 &&
	       get_reg(s, (unsigned int)s->arch->place[reg], &ret->v);
}

static bool eval_load(void *ctx, struct cfi_value *v) { return read_stack(ctx, v->v, &v->v); }

static bool evaluate(struct state *s, struct bytes e, const uint64_t *cfa, uint64_t *ret)
{
	const struct cfi_machine m = { .reg = eval_reg, .load = eval_load, .ctx = s };
	struct cfi_value first = { cfa ? *cfa : 0, CFI_NUMBER }, v;

	if (!cfi_eval(&m, e, cfa ? &first : NULL, &v))
		return false;
	*ret = v.v;
	return true;
}

/* @cfa: NULL while the CFA itself is computed. */
static bool apply_rule(struct state *s, const struct cfi *c, const struct cfi_rule *r,
		       const uint64_t *cfa, uint64_t *ret)
{
	uint64_t at = (cfa ? *cfa : 0) + (uint64_t)(int64_t)r->off;

	switch ((enum cfi_kind)r->kind) {
	case CFI_SAME:
	case CFI_UNDEFINED:
		return false;
	case CFI_SAVED:
		return read_stack(s, at, ret);
	case CFI_CFA_VALUE:
		*ret = at;
		return true;
	case CFI_REG:
		if (!get_reg(s, r->from, ret))
			return false;
		*ret += (uint64_t)(int64_t)r->off;
		return true;
	case CFI_SAVED_AT:
		return evaluate(s, cfi_expr(c, r), cfa, &at) && read_stack(s, at, ret);
	case CFI_VALUE:
		return evaluate(s, cfi_expr(c, r), cfa, ret);
	}
	return false;
}

enum step { STEP_ON, STEP_END };

static enum step end(struct unwind_out *out, enum unwind_end why)
{
	out->end = why;
	return STEP_END;
}

/* Goes to the caller, which is at @ip. */
static enum step go_to(struct state *s, uint64_t ip, bool exact)
{
	s->ip = ip;
	s->exact = exact;
	if (s->arch->link) { /* the call has overwritten it */
		s->valid &= ~(1u << CFI_RA);
	} else {
		s->regs[CFI_RA] = ip;
		s->valid |= 1u << CFI_RA;
	}
	return STEP_ON;
}

/* The stack shrinks from callee to caller, but a handler may have run on another one, and the
 * innermost function may have its return address in a register (arm64; vfork() of glibc, whose
 * child would overwrite it). */
static bool may_go_to(const struct state *s, const struct cfi_row *row, uint64_t sp)
{
	bool in_register = row->cnt && row->rules[row->cnt - 1].reg == CFI_RA &&
			   row->rules[row->cnt - 1].kind == CFI_REG;

	return row->signal || sp > s->regs[CFI_SP] ||
	       (sp == s->regs[CFI_SP] && s->exact && in_register);
}

/* Replaces the registers by those of the caller. */
static enum step apply_row(struct state *s, const struct cfi *c, const struct cfi_row *row,
			   struct unwind_out *out)
{
	uint64_t regs[CFI_REGS], cfa;
	uint32_t valid = s->valid & ~(1u << CFI_RA);
	bool has_caller = true;

	s->cut = false;
	if (!apply_rule(s, c, &row->cfa, NULL, &cfa))
		return end(out, s->cut ? UNWIND_CUT : UNWIND_BAD);
	memcpy(regs, s->regs, sizeof(regs));
	/* as the ABI has it, unless a rule says otherwise: what was pushed is popped */
	regs[CFI_SP] = cfa;
	valid |= 1u << CFI_SP;
	for (unsigned int i = 0; i < row->cnt; i++) {
		const struct cfi_rule *r = &row->rules[i];
		uint32_t bit = 1u << r->reg;

		s->cut = false;
		valid &= ~bit;
		if (apply_rule(s, c, r, &cfa, &regs[r->reg]))
			valid |= bit;
		if (r->reg == CFI_RA)
			has_caller = r->kind != CFI_UNDEFINED;
	}
	if (!has_caller)
		return end(out, UNWIND_START);
	if (!(valid >> CFI_RA & 1))
		return end(out, s->cut ? UNWIND_CUT : UNWIND_BAD); /* it is the last rule */
	if (!regs[CFI_RA])
		return end(out, UNWIND_START);
	if (!may_go_to(s, row, regs[CFI_SP]))
		return end(out, UNWIND_BAD);
	memcpy(s->regs, regs, sizeof(regs));
	s->valid = valid;
	return go_to(s, row->ra_signed ? regs[CFI_RA] & s->arch->code_mask : regs[CFI_RA],
		     row->signal);
}

/* Go code: its own table tells how much lies on the stack, for every address. */
static enum step by_go_frame(struct state *s, uint32_t size, uint8_t flags, struct unwind_out *out)
{
	uint64_t sp = s->regs[CFI_SP], bp, ip;

	if (flags & (GO_FUNC_TOP | GO_FUNC_LEFT) ||
	    (flags & GO_FUNC_CLONE && s->exact && !s->regs[0]))
		return end(out, UNWIND_START);
	if (flags & GO_FUNC_SP_WRITE &&
	    !(flags & GO_FUNC_CLONE)) /* it goes on on the goroutine's stack, or the thread's */
		return end(out, UNWIND_CUT);
	s->cut = false;
	if (!read_stack(s, sp + size, &ip))
		return end(out, s->cut ? UNWIND_CUT : UNWIND_BAD);
	s->valid = 1u << CFI_SP;
	if (size >= sizeof(bp) && read_stack(s, sp + size - sizeof(bp), &bp)) {
		s->regs[CFI_FP] = bp;
		s->valid |= 1u << CFI_FP;
	}
	s->regs[CFI_SP] = sp + size + sizeof(ip);
	return go_to(s, ip, flags & GO_FUNC_INJECTED);
}

/* No unwind information: code of a JIT, perhaps with frame pointers. */
static enum step by_frame_pointer(struct state *s, struct unwind_out *out)
{
	uint64_t bp, next, ip;
	struct mapping *p;

	s->cut = false;
	if (!get_reg(s, CFI_FP, &bp) || bp < s->regs[CFI_SP] || bp & 7 ||
	    !read_stack(s, bp, &next) || !read_stack(s, bp + 8, &ip))
		return end(out, s->cut ? UNWIND_CUT : UNWIND_NO_CFI);
	ip &= s->arch->code_mask;
	p = maps_find(s->maps, ip - 1);
	if (!p || !p->exec)
		return end(out, UNWIND_NO_CFI);
	out->guessed = true;
	s->regs[CFI_FP] = next;
	s->regs[CFI_SP] = bp + 16;
	s->valid = 1u << CFI_FP | 1u << CFI_SP;
	return go_to(s, ip, false);
}

static bool is_sigreturn(const struct cfi_arch *a, struct elf_file *f, const struct mapping *p,
			 uint64_t ip)
{
	char there[16];

	return f &&
	       elf_file_read(f, ip - p->start + p->off, there, a->sigreturn_len) ==
		       a->sigreturn_len &&
	       !memcmp(there, a->sigreturn, a->sigreturn_len);
}

/* Where a handler returns to: its unwind information, if it has any (musl has none, and arm64's
 * vdso knows of two registers), does not matter, because the kernel has put all on the stack. */
static enum step by_sigregs(struct state *s, struct unwind_out *out)
{
	uint64_t at = s->regs[CFI_SP] + s->arch->sigregs_at, v, ip = 0;

	s->cut = false;
	s->valid = 0;
	for (unsigned int i = 0; i < s->arch->sigregs_cnt; i++) {
		int8_t place = s->arch->sigregs[i];

		if (place < 0)
			continue;
		if (!read_stack(s, at + i * 8ull, &v))
			return end(out, s->cut ? UNWIND_CUT : UNWIND_BAD);
		if (place == CFI_IP)
			ip = v;
		else
			s->regs[place] = v;
		s->valid |= place == CFI_IP ? 0 : 1u << place;
	}
	s->ip = ip;
	s->exact = true;
	if (!s->arch->link) {
		s->regs[CFI_RA] = ip;
		s->valid |= 1u << CFI_RA;
	}
	return STEP_ON;
}

/* glibc ends the FDE of clone3 just before the system call, because in the new thread it would be
 * wrong; a thread that never ran stands right behind it, as does the one that made it. */
static const struct cfi_row *row_of_clone(struct elf_file *f, const struct mapping *p, uint64_t ip,
					  uint64_t vaddr)
{
	static const uint8_t syscall[2] = { 0x0f, 0x05 };
	const struct fde *fde = ehframe_find(f->fdes, f->fde_cnt, vaddr - sizeof(syscall) - 1);
	uint8_t code[sizeof(syscall)];

	if (!fde || fde->start + fde->len != vaddr - sizeof(syscall) ||
	    elf_file_read(f, ip - sizeof(code) - p->start + p->off, code, sizeof(code)) !=
		    sizeof(code) ||
	    memcmp(code, syscall, sizeof(code)))
		return NULL;
	return elf_file_cfi_row(f, vaddr - sizeof(syscall) - 1);
}

/* How a frame is left, by what its file tells. */
struct how {
	struct elf_file *f; /* NULL: none of this machine */
	uint64_t vaddr;
	bool is_go;
	uint32_t go_size;
	uint8_t go_flags;
	const struct cfi_row *row; /* NULL: by its frame pointer, if it has one */
	bool made_up;              /* there is no caller */
};

/* By its file, not guessed from the code. */
static bool is_told(const struct how *h) { return h->row && !h->row->bad && !h->row->guessed; }

/* A return address that no call has left: a function begins there, and nothing lies before it. So
 * makecontext() ends the stack that it makes. */
static bool is_made_up(const struct how *h)
{
	const struct fde *fde;

	if (!h->f || h->is_go || is_told(h))
		return false;
	fde = ehframe_find(h->f->fdes, h->f->fde_cnt, h->vaddr + 1);
	return fde && fde->start == h->vaddr + 1 &&
	       !ehframe_find(h->f->fdes, h->f->fde_cnt, h->vaddr);
}

static void look_up(struct rows *u, const struct cfi_arch *arch, struct maps *m, struct mapping *p,
		    uint64_t at, bool exact, struct how *ret)
{
	struct elf_file *f = maps_file(m, p, u->files);
	struct go_tab *go;

	*ret = (struct how){ .f = NULL };
	if (!f || f->machine != arch->machine || !f->is64 || maps_vaddr(p, f, at, &ret->vaddr))
		return;
	ret->f = f;
	ret->is_go = !arch->link && !elf_file_go(f, false, &go) &&
		     go_tab_frame(go, ret->vaddr, &ret->go_size, &ret->go_flags);
	if (!ret->is_go)
		ret->row = elf_file_cfi_row(f, ret->vaddr);
	ret->made_up = !exact && is_made_up(ret);
	if (!arch->link && !ret->is_go && !ret->made_up &&
	    !ehframe_find(f->fdes, f->fde_cnt, ret->vaddr))
		ret->row = elf_file_code_row(f, exact ? ret->vaddr : ret->vaddr + 1, !exact);
}

static void rule_of(const struct how *h, uint64_t ip, struct cc_rule *ret)
{
	if (h->made_up)
		*ret = (struct cc_rule){ .cfa = CC_VIA_SP, .what = CC_RULE_KNOWN | CC_RULE_END };
	else if (h->is_go)
		cfi_rule_of_go(h->go_size, h->go_flags, ret);
	else if (!h->row || h->row->bad)
		cfi_rule_of_fp(ret);
	else
		cfi_rule_of(h->f->cfi, h->row, ip, ret);
	if (h->row && h->row->guessed && ret->what & CC_RULE_KNOWN)
		ret->what |= CC_RULE_GUESSED | CC_RULE_NO_ZERO;
}

/* What code without unwind information seems to do. A call must lie where it leads to. */
static bool apply_guess(struct state *s, const struct how *h, struct unwind_out *out)
{
	uint64_t fp, vaddr;
	struct elf_file *f;
	struct mapping *p;

	if (h->row->cfa.from == CFI_FP &&
	    (!get_reg(s, CFI_FP, &fp) || fp < s->regs[CFI_SP] || fp & 7))
		return false;
	if (apply_row(s, h->f->cfi, h->row, out) == STEP_END)
		return false;
	p = maps_find(s->maps, s->ip - 1);
	f = p && p->exec ? maps_file(s->maps, p, s->u->files) : NULL;
	return f && !maps_vaddr(p, f, s->ip - 1, &vaddr) &&
	       code_called(h->f, h->vaddr, f, vaddr + 1);
}

/* @at: where the row is for. If it turns out to be wrong it is never believed again, and the frame
 * is left by its frame pointer: code that a compiler of its own has made, as V8's. */
static enum step by_guess(struct state *s, const struct how *h, uint64_t at, struct cc_rule *rule,
			  struct unwind_out *out)
{
	const struct state before = *s;

	out->guessed = true;
	out->end = UNWIND_NO_CFI;
	if (apply_guess(s, h, out))
		return STEP_ON;
	if (out->end == UNWIND_CUT)
		return STEP_END;
	*s = before;
	elf_file_code_wrong(h->f, at, !s->exact);
	if (rule)
		cfi_rule_of_fp(rule);
	return by_frame_pointer(s, out);
}

static enum step step(struct state *s, struct mapping *p, uint64_t ip, struct unwind_out *out)
{
	struct cc_rule *rule = s->in->learn && !s->arch->link ? &out->rules[out->cnt - 1] : NULL;
	const struct cfi_row *clone;
	struct how h;

	look_up(s->u, s->arch, s->maps, p, ip, s->exact, &h);
	if ((!is_told(&h) || (h.row->signal && s->arch->link)) &&
	    is_sigreturn(s->arch, h.f, p, s->ip))
		return by_sigregs(s, out);
	if (h.row && !is_told(&h) && out->cnt == 1 && !s->arch->link) {
		clone = row_of_clone(h.f, p, ip, h.vaddr);
		if (clone && !s->regs[0]) /* rax: what clone gives the new thread */
			return end(out, UNWIND_START);
		if (clone && !clone->bad)
			rule = NULL; /* true for the thread that called only */
		if (clone)
			h.row = clone;
		else /* the other may have moved */
			look_up(s->u, s->arch, s->maps, p, ip, s->exact, &h);
	}
	if (rule)
		rule_of(&h, s->ip, rule);
	if (h.made_up)
		return end(out, UNWIND_START);
	if (h.is_go)
		return by_go_frame(s, h.go_size, h.go_flags, out);
	if (!h.row || h.row->bad)
		return by_frame_pointer(s, out);
	if (h.row->guessed)
		return by_guess(s, &h, s->exact ? h.vaddr : h.vaddr + 1, rule, out);
	return apply_row(s, h.f->cfi, h.row, out);
}

bool frame_interrupts(struct maps *m, struct file_cache *c, uint64_t ip)
{
	struct mapping *p = maps_find(m, ip - 1);
	struct elf_file *f = p ? maps_file(m, p, c) : NULL;
	const struct cfi_arch *arch = f ? cfi_arch(f->machine) : NULL;
	const struct cfi_row *row;
	uint64_t vaddr;

	if (!arch || maps_vaddr(p, f, ip - 1, &vaddr))
		return false;
	row = elf_file_cfi_row(f, vaddr);
	return row && !row->bad ? row->signal : is_sigreturn(arch, f, p, ip);
}

static bool rows_rule(struct unwinder *u, struct maps *m, uint64_t ip, bool exact,
		      struct cc_rule *ret)
{
	const struct cfi_arch *arch = cfi_arch(CFI_MACHINE_HERE);
	uint64_t at = exact ? ip : ip - 1;
	struct mapping *p = maps_find(m, at);
	struct how h;

	*ret = (struct cc_rule){ .what = 0 };
	if (!p || !p->exec || arch->link)
		return false;
	look_up((struct rows *)u, arch, m, p, at, exact, &h);
	rule_of(&h, ip, ret);
	if (h.row && !h.row->bad && h.row->signal)
		ret->what |= CC_RULE_SIGNAL;
	return ret->what & CC_RULE_KNOWN;
}

static void rows_unwind(struct unwinder *u, struct maps *m, const struct unwind_in *in,
			struct unwind_out *out)
{
	struct state s = { .u = (struct rows *)u,
			   .maps = m,
			   .in = in,
			   .arch = in->arch,
			   .ip = in->ip,
			   .valid = (1u << CFI_REGS) - 1,
			   .exact = true };

	memcpy(s.regs, in->regs, sizeof(s.regs));
	if (!s.arch->link)
		s.regs[CFI_RA] = in->ip;
	out->cnt = 0;
	out->guessed = false;
	out->miss = 0;
	for (;;) {
		uint64_t ip = s.ip, at = s.exact ? ip : ip - 1;
		struct mapping *p = maps_find(m, at);

		if (!p || !p->exec) {
			out->end = UNWIND_NO_MAP;
			out->miss = ip;
			return;
		}
		if (out->cnt == CC_STACK_MAX) {
			out->end = UNWIND_DEEP;
			return;
		}
		out->ip[out->cnt] = ip;
		if (in->learn)
			out->rules[out->cnt] = (struct cc_rule){ .what = 0 };
		out->cnt++;
		if (step(&s, p, at, out) == STEP_END)
			return;
		if (in->learn && s.exact)
			out->rules[out->cnt - 1].what |= CC_RULE_SIGNAL;
	}
}

static void rows_free(struct unwinder *u) { free(u); }

int unwind_rows_new(struct file_cache *c, struct unwinder **ret)
{
	static const struct unwinder_ops ops = {
		.name = "rows",
		.unwind = rows_unwind,
		.rule = rows_rule,
		.free = rows_free,
	};
	struct rows *u = calloc(1, sizeof(*u));

	if (!u)
		return -ENOMEM;
	u->base.ops = &ops;
	u->files = c;
	*ret = &u->base;
	return 0;
}
