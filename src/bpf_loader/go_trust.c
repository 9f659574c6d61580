/* SPDX-License-Identifier: Apache-2.0 */
/* go_trust: a Go process's offsets are believed when its threads bear them out, at the start by
 * looking into its memory, then for as long as the kernel programs find them true. */
#include "go.h"
#include "go_attach.h"
#include "go_check.h"
#include "iter.h"
#include "pidns.h"

#include <errno.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "criticast.skel.h"

#define BAD_ENOUGH 8       /* threads or switches, to give up */
#define REFUSED_ENOUGH 100 /* times, one a poll: some are read while they change */
#define SAMPLES_MAX 64

static bool trusted(const struct go_proc *p)
{
	return p->good >= CC_BPF_GO_GOOD_MIN && p->bad <= p->good / CC_BPF_GO_BAD_SHARE;
}

int go_read_counts(struct loader *l, struct go_proc *p)
{
	struct cc_bpf_go c;
	uint32_t tgid = pidns_global(l, p->tgid);
	if (bpf_map_lookup_elem(bpf_map__fd(l->skel->maps.go_known), &p->slot, &c))
		return -errno;
	if (c.tgid != tgid)
		return -ENOENT;
	p->good = c.good;
	p->bad = c.bad;
	p->ends.ended = c.ended;
	p->ends.late = c.late;
	p->ends.unseen = c.unseen;
	p->ends.handled = c.handled;
	return 0;
}

/* From here on its threads work for all: a request told before the first goroutine is nobody's. */
static int say_it_is_go(struct loader *l, const struct go_proc *p)
{
	struct cc_rec_go_on r = {
		.h = { .size = sizeof(r), .kind = CC_REC_GO_ON, .cpu = 0xffff, .ts = loader_now() },
		.tgid = p->tgid,
		.tid = p->tgid,
	};
	return rec_buf_put(&l->go->notes, &r.h, sizeof(r));
}

/* The offsets of @p led back from enough threads: now its probes. */
static int turn_on(struct loader *l, struct go_proc *p)
{
	struct cc_err why = { .pos = -1 };
	const struct go_target *t = &p->target;
	bool probes = p->tier != LOADER_GO_ID && l->go->watch.choice.level != GO_LEVEL_NONE;
	int err = say_it_is_go(l, p);
	if (err)
		return err;
	err = probes ? go_probe_all(l, p, &why) : 0;
	p->state = LOADER_GO_STATE_ON;
	if (err) {
		p->tier = LOADER_GO_ID;
		err = go_note(l->go, "go: pid %u: %s; only which goroutine runs is known", p->tgid,
			      why.msg);
	}
	if (err)
		return err;
	return go_note(l->go,
		       "go: pid %u is %s (%s): tier %s, %u probes; offsets from %s, true on %u "
		       "threads or switches%s",
		       p->tgid, t->version, go_found_name(t->version_by),
		       loader_go_tier_name(p->tier), p->probe_cnt, go_found_name(t->layout_by),
		       p->good,
		       l->go->multi || !p->probe_cnt ? "" : "; no uprobe_multi: slow to detach");
}

static int give_up(struct loader *l, struct go_proc *p, const char *why)
{
	go_detach(p);
	go_untell_kernel(l, p);
	go_sweep(l, p->tgid);
	p->state = LOADER_GO_STATE_WRONG;
	return go_note(l->go,
		       "go: pid %u (%s): its offsets are not true here (%u threads or switches "
		       "right, %u wrong%s%s): threads only",
		       p->tgid, p->target.version, p->good, p->bad, *why ? "; " : "", why);
}

/* Has the process itself judge the layout. */
static int check(struct loader *l, struct go_proc *p)
{
	struct loader_go_sample s[SAMPLES_MAX];
	struct loader_go_verdict v = { .why.pos = -1 };
	const struct go_target *t = &p->target;
	int cnt = go_check_sample(l, p, s, SAMPLES_MAX);
	int err = l->o.go.judge(l->o.go.ctx, p->tgid, s, (size_t)cnt, &t, &v);
	if (err == -ENOMEM)
		return err;
	if (err == -EINVAL && ++p->refused >= REFUSED_ENOUGH)
		return give_up(l, p, v.why.msg);
	if (err || v.right < CC_BPF_GO_GOOD_MIN)
		return 0; /* it goes on, and will show more */
	p->target = *t;
	p->good = v.right;
	p->bad = 0; /* what was read while it changed is not held against it */
	err = go_tell_kernel(l, p);
	return err ? err : turn_on(l, p);
}

int go_trust(struct loader *l, struct go_proc *p)
{
	if (p->state == LOADER_GO_STATE_WRONG)
		return 0;
	if (p->known && go_read_counts(l, p))
		return 0; /* it exec'd: that will be told */
	if (p->state == LOADER_GO_STATE_CHECKING) {
		int err = check(l, p); /* says also where it was loaded */
		return err || p->state != LOADER_GO_STATE_CHECKING || !trusted(p) ? err
										  : turn_on(l, p);
	}
	if (p->bad >= BAD_ENOUGH && !trusted(p))
		return give_up(l, p, "");
	go_ends_watch(l, p);
	return 0;
}
