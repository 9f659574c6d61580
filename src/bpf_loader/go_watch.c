/* SPDX-License-Identifier: Apache-2.0 */
/* go_watch: what the probes cost, measured as far as that is possible: a trap when the first is
 * set, hits and the CPU time of the targets once an interval. */
#include "go.h"
#include "iter.h"
#include "proc_stat.h"
#include "stats.h"
#include "stream.h"

#define BUSY_MIN 20 /* per cent of a CPU: below, nobody misses what the probes take */

static cc_ns cpu_of(uint32_t tgid)
{
	return proc_stat(tgid, PROC_STAT_UTIME) + proc_stat(tgid, PROC_STAT_STIME);
}

static int change(struct loader *l, uint32_t level, unsigned int share)
{
	static const char *const what[] = {
		[GO_LEVEL_ALL] = "all probes again",
		[GO_LEVEL_THIN] = "items in channel buffers are not followed any more",
		[GO_LEVEL_NONE] = "tier id from now on: only which goroutine runs",
	};
	struct go_choice *c = &l->go->watch.choice;
	int err = 0;
	for (size_t i = 0; i < l->go->proc_cnt && !err; i++)
		err = go_change(l, l->go->procs[i], level);
	if (!err && level > c->level)
		err = go_note(
			l->go,
			"go: probes took about %u %% of the target's CPU: %s (--go waits keeps "
			"them)",
			share, what[level]);
	else if (!err)
		err = go_note(l->go, "go: the target has time: %s", what[level]);
	*c = (struct go_choice){ .level = level };
	return err ? err : stream_go_tier(l, rec_buf_put, &l->go->notes);
}

void go_watch_measure(struct go_side *g)
{
	if (!g->watch.measured)
		uprobe_measure(&g->watch.price); /* else what is usual is taken for it */
	g->watch.measured = true;
}

static int tell(struct loader *l, const struct go_hits *h, cc_ns took, cc_ns probes,
		unsigned int share)
{
	const struct uprobe_price *p = &l->go->watch.price;
	char nops[64] = "";
	if (h->nops)
		snprintf(nops, sizeof(nops), ", %.1f us on a nop, %u %% of them",
			 (double)p->nop / 1e3, (unsigned int)(100 * h->nops / h->cnt));
	return go_note(
		l->go,
		"go: %llu hits of probes a second, %.1f us each, about %u %% of the target's "
		"CPU; a trap costs %.1f us here%s",
		(unsigned long long)(h->cnt * CC_S(1) / took),
		(double)probes / (double)h->cnt / 1e3, share,
		(double)(p->trap ? p->trap : GO_TRAP_NS) / 1e3, nops);
}

int go_watch(struct loader *l)
{
	uint64_t v[CC_BPF_CNT_MAX];
	if (!l->go || !l->go->proc_cnt)
		return 0;
	struct go_watch *c = &l->go->watch, was = *c;
	int err = stream_read_counters(l, v);
	if (err)
		return err;
	c->hits.cnt = v[CC_CNT_GO_HITS];
	c->hits.nops = v[CC_BPF_CNT_GO_NOPS];
	stats_uprobes(l, &c->hits.runs, &c->hits.run_ns);
	c->at = loader_now();
	c->cpu = 0;
	for (size_t i = 0; i < l->go->proc_cnt; i++)
		c->cpu += cpu_of(l->go->procs[i]->tgid);
	if (!was.at || c->at <= was.at || c->cpu <= was.cpu)
		return 0; /* the first time, or one of them is gone */
	struct go_hits h = { .cnt = c->hits.cnt - was.hits.cnt,
			     .nops = c->hits.nops - was.hits.nops,
			     .runs = c->hits.runs - was.hits.runs,
			     .run_ns = c->hits.run_ns - was.hits.run_ns };
	cc_ns used = c->cpu - was.cpu, probes = go_cost_of(&h, &c->price);
	bool busy = 100 * used > BUSY_MIN * (c->at - was.at);
	unsigned int share = go_cost_share(used, probes);
	if (busy && probes && !c->told) {
		c->told = true;
		err = tell(l, &h, c->at - was.at, probes, share);
	}
	if (err || l->o.go.tier != LOADER_GO_AUTO)
		return err;
	uint32_t level = go_cost_choose(&c->choice, busy, share);
	return level == c->choice.level ? 0 : change(l, level, share);
}
