/* SPDX-License-Identifier: Apache-2.0 */
#include "go_attach.h"

#include "uprobe.h"
#include "wait_class.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "criticast.skel.h"

#define REASON_IO 2 /* in every version */
#define SEED_MULT 0x9e3779b97f4a7c15ull

enum { IN_WAITS = 1 << LOADER_GO_WAITS, IN_FULL = 1 << LOADER_GO_FULL };

#define IN_BOTH (IN_WAITS | IN_FULL)

/* Until 1.19 the sweeper goes through goschedImpl for every few pages that it sweeps, more often
 * than requests come; so who yields is probed at three places before, which the sweeper does not
 * pass. */
enum { TO_19 = 1 << 8, FROM_20 = 1 << 9 };

/* Shows ends of goroutines as they come; on and off: go_ends.c. */
enum { ENDS = 1 << 10 };

/* Who is made and who is ready, each where it comes from, which may cost less; else where both are
 * queued. */
enum { APART = 1 << 11, QUEUED = 1 << 12 };

/* Kernel side bit, site, tiers and versions, those that cannot be without it, reads a channel,
 * program. Where a goroutine begins to run there is none: see bpf/go_run.h. */
#define GO_ROWS(X)                                                        \
	X(PARK, GOPARK, IN_BOTH, IN_BOTH, 0, go_gopark)                   \
	X(RUNNABLE, RUNQPUT, IN_WAITS | QUEUED, IN_WAITS, 0, go_runnable) \
	X(MADE, CALL_MADE, IN_WAITS | APART, IN_WAITS, 0, go_made)        \
	X(READY, READY, IN_WAITS | APART, IN_WAITS, 0, go_ready)          \
	X(YIELD, GOYIELD, IN_WAITS | APART, IN_WAITS, 0, go_sched)        \
	X(STATUS, CASGSTATUS, IN_FULL, IN_FULL, 0, go_casgstatus)         \
	X(END, GDESTROY, IN_WAITS | ENDS, 0, 0, go_end)                   \
	X(END_OLD, GOEXIT0, IN_WAITS | ENDS, 0, 0, go_end)                \
	X(CORO, COROSTART, IN_WAITS, 0, 0, go_coro)                       \
	X(GOSCHED, GOSCHED, IN_WAITS | TO_19, 0, 0, go_gosched)           \
	X(SCHED, GOSCHEDIMPL, IN_WAITS | FROM_20, 0, 0, go_sched)         \
	X(SCHED_PREEMPT, GOPREEMPT, IN_WAITS | TO_19, 0, 0, go_sched)     \
	X(SCHED_GUARDED, GOGUARDED, IN_WAITS | TO_19, 0, 0, go_sched)     \
	X(PREEMPT, PREEMPTPARK, IN_WAITS, 0, 0, go_sched)                 \
	X(SEMA, SEMACQUIRE1, IN_BOTH, 0, 0, go_semacquire1)               \
	X(PUT, CALL_PUT, IN_BOTH, 0, 1, go_put)                           \
	X(TAKE, CALL_TAKE, IN_BOTH, 0, 1, go_take)                        \
	X(SELECT0, CALL_SELECT0, IN_BOTH, 0, 1, go_select)                \
	X(SELECT1, CALL_SELECT1, IN_BOTH, 0, 1, go_select)                \
	X(PASS, CALL_PASS, IN_BOTH, 0, 1, go_pass)

static const struct row {
	uint32_t at;
	enum go_func_id fn;
	uint32_t tiers, needed;
	bool of_chan; /* reads a channel */
} rows[] = {
#define X(at, fn, tiers, needed, of_chan, prog) \
	{ CC_BPF_GO_AT_##at, GO_FN_##fn, tiers, needed, of_chan },
	GO_ROWS(X)
#undef X
};

/* Why @s cannot be probed; NULL: it can. */
static const char *unusable(const struct go_site *s, bool force)
{
	if (!s->off)
		return "is not in the program";
	if (!s->args)
		return "can only be probed where its arguments are gone";
	if (s->insn == GO_INSN_STEP && !force)
		return "can only be probed by single-stepping, 13 times as dear (--force does)";
	return NULL;
}

static bool is_apart(const struct go_target *t, bool force)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].tiers & APART && unusable(&t->sites[rows[i].fn], force))
			return false;
	return true;
}

static bool is_wanted(const struct row *r, const struct go_target *t, enum loader_go_tier tier,
		      bool force)
{
	if (r->fn == GO_FN_GOEXIT0 && t->sites[GO_FN_GDESTROY].off)
		return false; /* which it calls */
	if (r->tiers & (APART | QUEUED) && r->tiers & (is_apart(t, force) ? QUEUED : APART))
		return false;
	return r->tiers >> tier & 1 && !(r->tiers & (t->minor <= 19 ? FROM_20 : TO_19));
}

size_t go_programs(struct loader *l, struct bpf_program *ret[CC_BPF_GO_AT_CNT])
{
	struct bpf_program *const progs[] = {
#define X(at, fn, tiers, needed, of_chan, prog) l->skel->progs.prog,
		GO_ROWS(X)
#undef X
	};
	_Static_assert(ARRAY_SIZE(progs) == CC_BPF_GO_AT_CNT, "one each, in the order of rows");
	memcpy(ret, progs, sizeof(progs));
	return ARRAY_SIZE(progs);
}

/* ---- the tier ------------------------------------------------------------------------------- */

static bool tier_possible(const struct go_target *t, enum loader_go_tier tier, bool force,
			  struct cc_err *why)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *cause =
			rows[i].needed >> tier & 1 && is_wanted(&rows[i], t, tier, force)
				? unusable(&t->sites[rows[i].fn], force)
				: NULL;
		if (cause) {
			loader_err(why, "%s %s", go_func_name(rows[i].fn), cause);
			return false;
		}
	}
	return true;
}

enum loader_go_tier go_tier_choose(const struct go_target *t, enum loader_go_tier asked, bool force,
				   struct cc_err *why)
{
	enum loader_go_tier first = asked == LOADER_GO_AUTO ? LOADER_GO_WAITS : asked;
	struct cc_err other;
	if (first == LOADER_GO_ID || tier_possible(t, first, force, why))
		return first;
	if (first == LOADER_GO_WAITS && tier_possible(t, LOADER_GO_FULL, force, &other))
		return LOADER_GO_FULL;
	if (first == LOADER_GO_FULL && tier_possible(t, LOADER_GO_WAITS, force, &other))
		return LOADER_GO_WAITS;
	return LOADER_GO_ID;
}

static bool is_set(const struct go_probe *p) { return p->fd >= 0 || p->link; }

/* Are the fields of channels known, and not only guessed to be as in an older version? */
static bool knows_channels(const struct go_target *t)
{
	return t->layout_by != GO_FOUND_NEWEST && t->layout_by != GO_FOUND_LIVE &&
	       t->layout.hchan_lock != GO_NO_FIELD;
}

/* Is that function probed at its calls, rather than at its begin? A single probe for all needs
 * uprobe_multi; kernels without make no calls of nops either. */
static bool is_at_calls(const struct go_proc *p, const struct row *r)
{
	const struct go_ready *y = &p->target.ready;
	if (r->fn != GO_FN_READY || !p->multi || !y->cnt)
		return false;
	for (uint32_t i = 0; i < y->cnt; i++)
		if (y->at[i].arg != GO_READY_G && !knows_channels(&p->target))
			return false; /* nor sudogs */
	return true;
}

/* ---- what the programs know ----------------------------------------------------------------- */

static uint8_t object_of(const struct go_target *t, uint32_t reason, uint8_t cls)
{
	bool sends = !strncmp(t->reasons.name[reason], "chan send", 9);
	if (reason == REASON_IO)
		return knows_channels(t) && t->layout.polldesc_rg != GO_NO_FIELD
			       ? CC_BPF_GO_OBJ_POLL
			       : CC_BPF_GO_OBJ_NONE;
	switch (cls) {
	case WAIT_CHAN:
		return !knows_channels(t) ? CC_BPF_GO_OBJ_NONE
		       : sends            ? CC_BPF_GO_OBJ_SEND
					  : CC_BPF_GO_OBJ_CHAN;
	case WAIT_MUTEX:
	case WAIT_SEMA:
		return CC_BPF_GO_OBJ_SEMA;
	case WAIT_SELECT:
		return knows_channels(t) && t->layout.g_param != GO_NO_FIELD ? CC_BPF_GO_OBJ_SELECT
									     : CC_BPF_GO_OBJ_NONE;
	case WAIT_COND:
		return CC_BPF_GO_OBJ_LOCK;
	case WAIT_GC:
		return CC_BPF_GO_OBJ_QUIET;
	default:
		return CC_BPF_GO_OBJ_NONE;
	}
}

void go_config(const struct go_proc *p, uint32_t tgid, struct cc_bpf_go *ret)
{
	const struct go_target *t = &p->target;
	const struct go_site *park = &t->sites[GO_FN_GOPARK], *recv = &t->sites[GO_FN_RECV];
	uint64_t park_at = park->entry + park->delta;
	_Static_assert(GO_REASONS_MAX == CC_BPF_GO_REASONS, "the same reasons");
	_Static_assert(GO_HANDLERS_MAX == CC_BPF_GO_HANDLERS, "the same handlers");
	*ret = (struct cc_bpf_go){
		.at = t->layout,
		.tgid = tgid,
		.tls_off = t->tls_off,
		.seed = (loader_now() ^ (uint64_t)p->tgid << 32) * SEED_MULT,
		.good = p->good,
		.bad = p->bad,
		.cls_write = WAIT_NET_SEND,
		.cls_mutex = WAIT_MUTEX,
		.probed = p->probe_cnt != 0,
		.park_bare = !park->framed,
		.recv_at = (int64_t)(recv->entry - park_at),
		.recv_size = recv->off ? recv->size : 0,
		.handler_cnt = CC_MIN(t->handler_cnt, (uint32_t)GO_HANDLERS_MAX),
	};
	for (uint32_t i = 0; i < ret->handler_cnt; i++)
		ret->handlers[i] = (int64_t)(t->handlers[i] - park_at);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		bool calls = is_at_calls(p, &rows[i]);
		if (!calls && t->sites[rows[i].fn].insn == GO_INSN_NOP5)
			ret->on_nop |= 1u << rows[i].at;
		if (!calls && t->sites[rows[i].fn].repeats)
			ret->repeats |= 1u << rows[i].at;
	}
	for (uint32_t i = 0; i < CC_BPF_GO_REASONS; i++) {
		ret->cls[i] = i < t->reasons.cnt ? t->reasons.cls[i] : WAIT_BLOCKED;
		ret->obj[i] = object_of(t, i, ret->cls[i]);
	}
}

/* ---- probes --------------------------------------------------------------------------------- */

/* Where the probes of a row are. */
struct places {
	uint32_t cnt;
	uint64_t off[GO_READY_MAX], cookies[GO_READY_MAX];
};

static void places_of(const struct go_proc *p, const struct row *r, struct places *ret)
{
	static const uint8_t by[] = { [GO_READY_G] = CC_BPF_GO_BY_G,
				      [GO_READY_SUDOG] = CC_BPF_GO_BY_SUDOG,
				      [GO_READY_SEND] = CC_BPF_GO_BY_SEND };
	const struct go_ready *y = &p->target.ready;
	*ret = (struct places){ .cnt = 1, .off = { p->target.sites[r->fn].off } };
	if (!is_at_calls(p, r))
		return;
	ret->cnt = y->cnt;
	for (uint32_t i = 0; i < y->cnt; i++) {
		ret->off[i] = y->at[i].off;
		ret->cookies[i] = CC_BPF_GO_COOKIE(by[y->at[i].arg], y->at[i].nop);
	}
}

static int probe_set(const struct go_proc *p, struct bpf_program *prog, const struct places *at,
		     struct go_probe *ret)
{
	char path[32];
	snprintf(path, sizeof(path), "/proc/%u/exe", p->tgid);
	if (p->multi) {
		int fd = uprobe_multi_set(bpf_program__fd(prog), path, at->off, at->cookies,
					  at->cnt, p->tgid);
		if (fd < 0)
			return fd;
		ret->fd = fd;
		return 0;
	}
	LIBBPF_OPTS(bpf_uprobe_opts, opts);
	ret->link = bpf_program__attach_uprobe_opts(prog, (pid_t)p->tgid, path, at->off[0], &opts);
	return ret->link ? 0 : -errno;
}

static void probe_close(struct go_proc *p, size_t i)
{
	if (!is_set(&p->probes[i]))
		return;
	if (p->probes[i].fd >= 0)
		close(p->probes[i].fd);
	bpf_link__destroy(p->probes[i].link);
	p->probes[i] = (struct go_probe){ .fd = -1 };
	p->probe_cnt--;
}

/* Sets the probe of a row, if it is wanted and can be set. 0 or -errno. */
static int row_set(struct loader *l, struct go_proc *p, size_t i, struct bpf_program *prog)
{
	const struct go_site *s = &p->target.sites[rows[i].fn];
	if (!is_wanted(&rows[i], &p->target, p->tier, l->o.go.force) ||
	    unusable(s, l->o.go.force) || (rows[i].of_chan && !knows_channels(&p->target)))
		return 0;
	struct places at;
	places_of(p, &rows[i], &at);
	int err = probe_set(p, prog, &at, &p->probes[i]);
	p->probe_cnt += !err;
	return err;
}

int go_attach(struct loader *l, struct go_proc *p, struct cc_err *why)
{
	struct bpf_program *progs[CC_BPF_GO_AT_CNT];
	go_programs(l, progs);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		p->probes[i] = (struct go_probe){ .fd = -1 };
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int err = row_set(l, p, i, progs[i]);
		if (err && rows[i].needed >> p->tier & 1) {
			loader_err(why, "%s cannot be probed: %s", go_func_name(rows[i].fn),
				   strerror(-err));
			go_detach(p);
			return err;
		}
	}
	return 0;
}

bool go_attach_ends(struct loader *l, struct go_proc *p, bool on)
{
	struct bpf_program *progs[CC_BPF_GO_AT_CNT];
	bool is = false;
	go_programs(l, progs);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (!(rows[i].tiers & ENDS))
			continue;
		if (!on)
			probe_close(p, i);
		else if (!is_set(&p->probes[i]))
			row_set(l, p, i, progs[i]);
		is |= is_set(&p->probes[i]);
	}
	return is;
}

void go_thin_out(struct go_proc *p)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].at >= CC_BPF_GO_AT_PUT)
			probe_close(p, i);
}

void go_detach(struct go_proc *p)
{
	if (!p->probe_cnt)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		probe_close(p, i);
}
