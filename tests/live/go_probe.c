// SPDX-License-Identifier: Apache-2.0
/*
 * go_probe TIER PID: follows the goroutines of PID and writes their records as text, one a line,
 * for the checks. Writes "ready" to stderr when attached, "believed" when the offsets of a Go
 * process have held, so that its goroutines are told from then on; ends when the process does, or
 * at SIGTERM.
 */
#include "cli.h"
#include "go_find.h"
#include "go_target.h"
#include "loader.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile sig_atomic_t stopped;

static void on_signal(int sig)
{
	(void)sig;
	stopped = 1;
}

static int put_episode(const struct cc_rec_go_episode *e)
{
	return printf(
		"wait goid=%llu seq=%u flags=%u class=%u reason=%u out=%llu wake=%llu in=%llu "
		"waker=%llu waker_tid=%u tid=%u in_tid=%u object=%llu ustack=%llu fd=%d "
		"kind=%u lost=%llu\n",
		e->goid, e->seq, e->h.flags, e->wait_class, e->h.aux, e->out, e->wake, e->h.ts,
		e->waker_goid, e->waker_tid, e->tid, e->in_tid, e->object, e->ustack, e->fd,
		e->fd_kind, CC_LOST_CNT(e->lost));
}

static int put_stack(const struct cc_rec_stack *s)
{
	if (s->h.flags & CC_ST_KERNEL)
		return 0;
	return printf("stack key=%llu frames=%u full=%u\n", s->key, s->h.aux,
		      !!(s->h.flags & CC_ST_COMPLETE));
}

static int put_task(const struct cc_rec_go_task *t)
{
	return printf("task what=%u goid=%llu parent=%llu tid=%u born=%llu ts=%llu start=%llu\n",
		      t->h.aux, t->goid, t->parent_goid, t->tid, t->born, t->h.ts, t->start_pc);
}

static int put_on(const struct cc_rec_go_on *o)
{
	return printf("on got=%u goid=%llu tid=%u ts=%llu\n", o->h.aux, o->goid, o->tid, o->h.ts);
}

static int put_item(const struct cc_rec_go_item *i)
{
	return printf("item what=%u how=%u goid=%llu peer=%llu chan=%llu item=%llu ts=%llu\n",
		      i->h.aux, i->h.flags, i->goid, i->peer_goid, i->channel, i->item, i->h.ts);
}

static int put(void *ctx, const struct cc_rec *r, size_t len)
{
	(void)ctx;
	(void)len;
	int n = 0;
	switch (r->kind) {
	case CC_REC_GO_EPISODE:
		n = put_episode((const void *)r);
		break;
	case CC_REC_GO_TASK:
		n = put_task((const void *)r);
		break;
	case CC_REC_GO_ON:
		n = put_on((const void *)r);
		break;
	case CC_REC_GO_ITEM:
		n = put_item((const void *)r);
		break;
	case CC_REC_STACK:
		n = put_stack((const void *)r);
		break;
	case CC_REC_LOSS:
		n = printf("loss kind=%u cnt=%llu\n", r->aux, ((const struct cc_rec_loss *)r)->cnt);
		break;
	case CC_REC_NAME:
		if (r->aux == CC_NAME_NOTE)
			n = printf("note %.*s\n", ((const struct cc_rec_name *)r)->len[0],
				   ((const struct cc_rec_name *)r)->text);
		break;
	}
	return n < 0 ? -EIO : 0;
}

static int run(struct cc_source *s)
{
	struct loader_stats st;
	struct loader_go_proc p[8];
	fputs("ready\n", stderr);
	int n = 0;
	bool believed = false;
	while (n >= 0 && !stopped) {
		if (!believed && loader_go_procs(s, p, 1) == 1 &&
		    p[0].state == LOADER_GO_STATE_ON) {
			fputs("believed\n", stderr);
			believed = true;
		}
		n = s->ops->poll(s, 20, put, NULL);
	}
	if (!loader_stats(s, &st))
		printf("drops go=%llu snap=%llu storage=%llu waits=%llu\n",
		       (unsigned long long)st.counters[CC_CNT_DROP_GO],
		       (unsigned long long)st.counters[CC_CNT_DROP_SNAP],
		       (unsigned long long)st.counters[CC_CNT_STORAGE_FAIL],
		       (unsigned long long)st.counters[CC_CNT_GO_EPISODES]);
	int cnt = loader_go_procs(s, p, ARRAY_SIZE(p));
	for (int i = 0; i < cnt; i++)
		printf("proc tgid=%u tier=%s state=%d good=%u bad=%u probes=%u version=%s\n",
		       p[i].tgid, loader_go_tier_name(p[i].tier), (int)p[i].state, p[i].good,
		       p[i].bad, p[i].probe_cnt, p[i].target->version);
	if (!stopped || n < 0)
		return n == -ENODATA ? 0 : n;
	n = s->ops->stop(s, put, NULL);
	return n < 0 ? n : 0;
}

int main(int argc, char **argv)
{
	static const char *const tiers[] = { "auto", "off", "id", "waits", "full" };
	struct cli_opts o = { 0 };
	uint32_t pid = argc > 2 ? (uint32_t)atoi(argv[2]) : 0;
	size_t tier = 0;
	while (argc > 1 && tier < ARRAY_SIZE(tiers) && strcmp(argv[1], tiers[tier]))
		tier++;
	if (!pid || tier == ARRAY_SIZE(tiers)) {
		fputs("usage: go_probe auto|off|id|waits|full PID\n", stderr);
		return 2;
	}
	struct loader_opts lo = {
		.pids = &pid, .pid_cnt = 1, .stack_min_ns = CC_US(50), .ring_bytes = 32u << 20
	};
	struct cc_source *s;
	struct cc_err why = { .pos = -1 };
	signal(SIGTERM, on_signal);
	signal(SIGINT, on_signal);
	int err = go_find_new(&o, (enum loader_go_tier)tier, &lo.go);
	if (!err)
		err = loader_source_new(&lo, &why, &s);
	if (err) {
		fprintf(stderr, "%s\n", why.msg[0] ? why.msg : strerror(-err));
		return err == -EPERM || err == -EOPNOTSUPP ? 77 : 1;
	}
	err = run(s);
	cc_source_free(s);
	if (fflush(stdout))
		err = -EIO;
	return err ? 1 : 0;
}
