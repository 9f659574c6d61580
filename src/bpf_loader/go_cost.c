/* SPDX-License-Identifier: Apache-2.0 */
/* go_cost: what the probes cost, and what tier auto may. A hit of a probe costs about the same
 * everywhere, so hits and the CPU time of the target say what share of it goes to the probes. */
#include "go.h"
#include "iter.h"
#include "proc_stat.h"
#include "stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HIT_NS 1200    /* trap (0.55 us) and program (0.5 to 0.8), on a busy machine */
#define SHARE_MAX 15   /* per cent of what the target would use without */
#define BUSY_MIN 20    /* per cent of a CPU: below, nobody misses what the probes take */
#define SHARE_WILD 45  /* then all at once, and soon */
#define OVER_TIMES 2   /* intervals, to give some up */
#define UNDER_TIMES 10 /* to take them up again */

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
	struct go_cost *c = &l->go->cost;
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
	c->level = level;
	c->over = c->under = 0;
	return err ? err : stream_go_tier(l, rec_buf_put, &l->go->notes);
}

int go_cost_watch(struct loader *l)
{
	uint64_t v[CC_BPF_CNT_MAX];
	if (!l->go || !l->go->proc_cnt)
		return 0;
	struct go_cost *c = &l->go->cost, was = *c;
	int err = stream_read_counters(l, v);
	if (err)
		return err;
	c->hits = v[CC_CNT_GO_HITS];
	c->at = loader_now();
	c->cpu = 0;
	for (size_t i = 0; i < l->go->proc_cnt; i++)
		c->cpu += cpu_of(l->go->procs[i]->tgid);
	if (!was.at || c->at <= was.at || c->cpu <= was.cpu)
		return 0; /* the first time, or one of them is gone */
	cc_ns used = c->cpu - was.cpu, probes = (c->hits - was.hits) * HIT_NS;
	bool busy = 100 * used > BUSY_MIN * (c->at - was.at);
	unsigned int share = used > probes ? (unsigned int)(100 * probes / (used - probes)) : 100;
	if (busy && probes && !c->told) {
		c->told = true;
		err = go_note(
			l->go, "go: %llu hits of probes a second, about %u %% of the target's CPU",
			(unsigned long long)((c->hits - was.hits) * CC_S(1) / (c->at - was.at)),
			share);
	}
	if (err || l->o.go.tier != LOADER_GO_AUTO)
		return err;
	bool wild = share > SHARE_WILD;
	c->over = busy && share > SHARE_MAX ? c->over + (wild ? OVER_TIMES : 1) : 0;
	c->under = busy ? 0 : c->under + 1;
	if (c->over >= OVER_TIMES && c->level < GO_LEVEL_NONE)
		return change(l, wild ? GO_LEVEL_NONE : c->level + 1, share);
	if (c->under >= UNDER_TIMES && c->level > GO_LEVEL_ALL)
		return change(l, GO_LEVEL_ALL, 0);
	return 0;
}
