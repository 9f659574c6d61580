/* SPDX-License-Identifier: Apache-2.0 */
#include "go_layout_find.h"
#include "go_live.h"
#include "go_tab.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What has never moved, Go 1.18 to 1.27. */
#define G_STACK 0
#define G_M 48
#define G_SCHED_SP 56
#define G_SCHED_PC 64
#define G_SCHED_G 72 /* is g itself */
#define M_G0 0

/* What has always stood together: {param, atomicstatus + 4 bytes, goid, schedlink, waitsince,
 * waitreason} and {parentGoid from 1.21, gopc, ancestors, startpc, racectx, waiting}. */
#define PARAM_BEFORE_STATUS 8
#define GOID_BEHIND_STATUS 8
#define REASON_BEHIND_STATUS 32
#define PARENT_BEFORE_GOPC 8
#define GOPC_BEFORE_START 16
#define WAITING_BEHIND_START 16

#define WORDS 64 /* of a g and of an m that are looked at */
#define GOID_MAX (1ull << 40)
#define RUNNING 2
#define SYSCALL 3
#define SCAN 0x1000
#define WRONG_SHARE 8
#define PARENT_MINOR 21

struct seen { /* one sample */
	uint32_t tid;
	uint64_t at; /* of its g */
	uint64_t g[WORDS], m[WORDS];
};

struct derive {
	const struct go_live *p;
	struct seen *v;
	size_t cnt;
};

/* Whether the word @i of g or m is as it must be in this sample. */
typedef bool word_fn(const struct derive *d, const struct seen *s, size_t i);

static bool is_procid(const struct derive *d CC_UNUSED, const struct seen *s, size_t i)
{
	return s->m[i] == s->tid;
}

static bool on_g0(const struct seen *s) { return s->m[M_G0 / 8] == s->at; }

/* m.tls[0] is g too, but g0 while the thread runs no goroutine. */
static bool is_curg(const struct derive *d CC_UNUSED, const struct seen *s, size_t i)
{
	return i != M_G0 / 8 && (s->m[i] == s->at) != on_g0(s);
}

static bool in_code(const struct derive *d, uint64_t addr, bool entry)
{
	struct go_func fn;

	return go_tab_func(d->p->tab, addr - d->p->bias, &fn) &&
	       (fn.entry == addr - d->p->bias) == entry;
}

static bool is_startpc(const struct derive *d, const struct seen *s, size_t i)
{
	const size_t back = GOPC_BEFORE_START / 8;

	if (on_g0(s))
		return true;
	return i >= back && i < WORDS && in_code(d, s->g[i], true) &&
	       in_code(d, s->g[i - back], false);
}

static bool is_status(const struct derive *d, const struct seen *s, size_t i)
{
	uint64_t status = s->g[i] & ~(uint64_t)SCAN, goid;

	if (on_g0(s))
		return true;
	if (i + REASON_BEHIND_STATUS / 8 >= WORDS || (status != RUNNING && status != SYSCALL))
		return false;
	goid = s->g[i + GOID_BEHIND_STATUS / 8];
	if (!goid || goid > GOID_MAX ||
	    (uint8_t)s->g[i + REASON_BEHIND_STATUS / 8] >= CC_MAX(d->p->t->reasons.cnt, 1))
		return false;
	/* an id is of one g alone */
	for (size_t k = 0; k < d->cnt; k++) {
		if (!on_g0(&d->v[k]) && d->v[k].at != s->at &&
		    d->v[k].g[i + GOID_BEHIND_STATUS / 8] == goid)
			return false;
	}
	return true;
}

static bool in_stack(const struct seen *s, uint64_t addr)
{
	return addr > s->g[G_STACK / 8] && addr < s->g[G_STACK / 8 + 1];
}

/* Saved when the goroutine stopped last; 0 if it never did. */
static bool is_sched_bp(const struct derive *d CC_UNUSED, const struct seen *s, size_t i)
{
	return on_g0(s) || !s->g[i] || in_stack(s, s->g[i]);
}

/* In how many samples the word is right; all but a few that were read while they changed will do.
 */
static bool fits(const struct derive *d, word_fn *right, size_t i)
{
	size_t ok = 0;

	for (size_t k = 0; k < d->cnt; k++)
		ok += right(d, &d->v[k], i);
	return ok && (d->cnt - ok) * WRONG_SHARE <= ok;
}

/* The one word that fits; -1: none, or several. */
static int only_word(const struct derive *d, word_fn *right)
{
	int found = -1;

	for (size_t i = 0; i < WORDS; i++) {
		if (!fits(d, right, i))
			continue;
		if (found >= 0)
			return -1;
		found = (int)i;
	}
	return found;
}

/* The first word of gobuf behind g that is a place in the stack of some goroutine: the words
 * between are not used on amd64, and a system call's stack pointer stands behind. */
static int sched_bp_word(const struct derive *d)
{
	for (size_t i = G_SCHED_G / 8 + 1; i <= G_SCHED_G / 8 + 4; i++) {
		bool set = false;

		for (size_t k = 0; k < d->cnt; k++)
			set |= !on_g0(&d->v[k]) && in_stack(&d->v[k], d->v[k].g[i]);
		if (set && fits(d, is_sched_bp, i))
			return (int)i;
	}
	return -1;
}

static void look(struct derive *d, const struct go_sample *s)
{
	struct seen *v = &d->v[d->cnt];
	const struct go_live *p = d->p;

	*v = (struct seen){ .tid = s->tid, .at = s->g };
	if (!s->g || !p->read(p->ctx, s->g, v->g, sizeof(v->g)))
		return;
	/* what can be seen already to be no g, or of a thread that is not at work yet */
	if (!v->g[G_M / 8] || v->g[G_STACK / 8] >= v->g[G_STACK / 8 + 1] ||
	    !p->read(p->ctx, v->g[G_M / 8], v->m, sizeof(v->m)))
		return;
	d->cnt++;
}

static size_t goroutines(const struct derive *d)
{
	size_t n = 0;

	for (size_t i = 0; i < d->cnt; i++) {
		size_t same = 0;

		while (same < i && d->v[same].at != d->v[i].at)
			same++;
		n += same == i && !on_g0(&d->v[i]);
	}
	return n;
}

static int fail(char *why, size_t cap, const char *what)
{
	snprintf(why, cap, "%s cannot be told from what its threads show", what);
	return -ENOENT;
}

static int derive(struct derive *d, struct go_layout *ret, char *why, size_t cap)
{
	int procid, curg, start, status, bp;

	if (goroutines(d) < 2) {
		snprintf(why, cap, "fewer than two goroutines were seen on its threads");
		return -ENOENT;
	}
	procid = only_word(d, is_procid);
	if (procid < 0)
		return fail(why, cap, "m.procid");
	curg = only_word(d, is_curg);
	if (curg < 0)
		return fail(why, cap, "m.curg");
	start = only_word(d, is_startpc);
	if (start < 0)
		return fail(why, cap, "g.startpc");
	status = only_word(d, is_status);
	if (status < 0)
		return fail(why, cap, "g.atomicstatus");
	bp = sched_bp_word(d);
	go_layout_clear(ret);
	ret->g_stack = G_STACK;
	ret->g_m = G_M;
	ret->g_sched_sp = G_SCHED_SP;
	ret->g_sched_pc = G_SCHED_PC;
	if (bp >= 0) /* none has waited yet */
		ret->g_sched_bp = (uint32_t)bp * 8;
	ret->g_atomicstatus = (uint32_t)status * 8;
	ret->g_param = ret->g_atomicstatus - PARAM_BEFORE_STATUS;
	ret->g_goid = ret->g_atomicstatus + GOID_BEHIND_STATUS;
	ret->g_waitreason = ret->g_atomicstatus + REASON_BEHIND_STATUS;
	ret->g_startpc = (uint32_t)start * 8;
	ret->g_gopc = ret->g_startpc - GOPC_BEFORE_START;
	if (d->p->t->minor >= PARENT_MINOR)
		ret->g_parentgoid = ret->g_gopc - PARENT_BEFORE_GOPC;
	ret->g_waiting = ret->g_startpc + WAITING_BEHIND_START;
	ret->m_g0 = M_G0;
	ret->m_procid = (uint32_t)procid * 8;
	ret->m_curg = (uint32_t)curg * 8;
	return 0;
}

int go_live_derive(const struct go_live *p, const struct go_sample *s, size_t cnt,
		   struct go_layout *ret, char *ret_why, size_t why_cap)
{
	struct derive d = { .p = p, .v = calloc(GO_LIVE_SAMPLES, sizeof(*d.v)) };
	int res;

	if (!d.v)
		return -ENOMEM;
	for (size_t i = 0; i < CC_MIN(cnt, GO_LIVE_SAMPLES); i++)
		look(&d, &s[i]);
	res = derive(&d, ret, ret_why, why_cap);
	free(d.v);
	return res;
}
