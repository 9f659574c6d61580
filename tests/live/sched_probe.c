// SPDX-License-Identifier: Apache-2.0
/*
 * sched_probe [OPTIONS] PID: traces PID through the live source and writes its records as text, one
 * a line, for the checks: they see the kernel side as it is, without the engine. Writes "ready" to
 * stderr when attached. Ends when the process does, after --dur, or at SIGTERM.
 *
 *	--tier auto|late|waking|eager|none  --ring BYTES  --min-block NS  --stack-min NS
 *	--slow-drain MS (polls this seldom, so that the ring fills)  --dur MS
 */
#include "loader.h"
#include "raw_stack.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static volatile sig_atomic_t stopped;

static void on_signal(int sig)
{
	(void)sig;
	stopped = 1;
}

static int put_episode(const struct cc_rec_episode *e)
{
	return printf("episode tid=%u seq=%u out=%llu wake=%llu in=%llu flags=%u state=%u nr=%d "
		      "waker=%u key=%u lost_cnt=%llu lost_ns=%llu\n",
		      e->tid, e->seq, e->out, e->wake, e->h.ts, e->h.flags, e->state,
		      (int16_t)e->h.aux, e->waker_tid, e->key, CC_LOST_CNT(e->lost),
		      CC_LOST_NS(e->lost));
}

static int put_extra(const struct cc_rec_extra *x)
{
	return printf("extra tid=%u seq=%u in=%llu flags=%u nr=%d uaddr=%llu owner=%u thr=%llu "
		      "ran=%llu occ=%u occ_ns=%llu fd=%d kind=%u\n",
		      x->tid, x->seq, x->h.ts, x->h.flags, (int16_t)x->h.aux, x->uaddr, x->owner,
		      x->throttled_ns, x->ran_ns, x->occupant_tid, x->occupant_ns, x->fd,
		      x->fd_kind);
}

static int put_snap(const struct cc_rec_snap *s)
{
	return printf(
		"snap tid=%u seq=%u what=%u of=%u kframes=%u bytes=%u sp=%llu ip=%llu top=%llu\n",
		s->tid, s->seq, s->h.aux, s->owner_tid, s->kframe_cnt, s->byte_cnt, s->sp, s->ip,
		s->stack_top);
}

static int put_open(const struct cc_rec_open_task *o)
{
	return printf("open tid=%u tgid=%u now=%llu out=%llu wake=%llu seq=%u flags=%u nr=%d "
		      "uaddr=%llu last_in=%llu lost_cnt=%llu lost_ns=%llu\n",
		      o->tid, o->tgid, o->h.ts, o->out, o->wake, o->seq, o->h.flags,
		      (int16_t)o->h.aux, o->uaddr, o->last_in, CC_LOST_CNT(o->lost),
		      CC_LOST_NS(o->lost));
}

static int put_task(const struct cc_rec_task *t)
{
	return printf("task what=%u tid=%u tgid=%u ts=%llu parent=%u old=%u exit=%d\n", t->h.aux,
		      t->tid, t->tgid, t->h.ts, t->parent, t->old_tid, t->exit_code);
}

static int put(void *ctx, const struct cc_rec *r, size_t len)
{
	const void *p = r;
	(void)ctx;
	if (len != r->size || len % 8) {
		printf("bad size=%u len=%zu kind=%u\n", r->size, len, r->kind);
		return 0;
	}
	switch (r->kind) {
	case CC_REC_EPISODE:
		return put_episode(p);
	case CC_REC_EXTRA:
		return put_extra(p);
	case CC_REC_SNAP:
		return put_snap(p);
	case CC_REC_OPEN_TASK:
		return put_open(p);
	case CC_REC_TASK:
		return put_task(p);
	case CC_REC_TARGET:
		return printf("target tgid=%u parent=%u\n", ((const struct cc_rec_target *)p)->tgid,
			      ((const struct cc_rec_target *)p)->parent);
	case CC_REC_SHORT:
		return printf("short tid=%u cnt=%u ns=%llu\n",
			      ((const struct cc_rec_short *)p)->tid,
			      ((const struct cc_rec_short *)p)->cnt,
			      ((const struct cc_rec_short *)p)->ns);
	case CC_REC_COUNTER:
	case CC_REC_OPTION:
		return printf("%s what=%u value=%llu\n",
			      r->kind == CC_REC_OPTION ? "option" : "counter", r->aux,
			      ((const struct cc_rec_counter *)p)->value);
	case CC_REC_LOSS:
		return printf("loss kind=%u cnt=%llu\n", r->aux,
			      ((const struct cc_rec_loss *)p)->cnt);
	case CC_REC_TICK:
		return printf("tick now=%llu drained=%llu last=%u\n", r->ts,
			      ((const struct cc_rec_tick *)p)->drained_to, r->flags);
	default:
		return printf("other kind=%u\n", r->kind);
	}
}

static enum loader_stack_tier tier_of(const char *name)
{
	static const char *const names[] = { "auto", "late", "waking", "eager", "none" };
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(name, names[i]))
			return (enum loader_stack_tier)i;
	exit(2);
}

static int trace(const struct loader_opts *o, int slow_ms, int dur_ms)
{
	struct cc_source *s;
	struct cc_err err;
	int ret = loader_source_new(o, &err, &s);
	if (ret) {
		fprintf(stderr, "%s\n", err.msg);
		return ret == -EPERM || ret == -EOPNOTSUPP ? 77 : 1;
	}
	fprintf(stderr, "ready\n");
	for (int ms = 0; !stopped && (!dur_ms || ms < dur_ms);) {
		struct timespec t = { .tv_nsec = (slow_ms ? slow_ms : 20) * 1000000l };
		nanosleep(&t, NULL);
		ms += slow_ms ? slow_ms : 20;
		while ((ret = s->ops->poll(s, 0, put, NULL)) > 0)
			if (slow_ms)
				break;
		if (ret < 0)
			break;
	}
	printf("end %d\n", ret);
	if (s->ops->stop(s, put, NULL))
		ret = -EIO;
	cc_source_free(s);
	return ret < 0 && ret != -ENODATA;
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "tier", 1, NULL, 't' },       { "ring", 1, NULL, 'r' },
		{ "min-block", 1, NULL, 'm' },  { "stack-min", 1, NULL, 's' },
		{ "slow-drain", 1, NULL, 'd' }, { "dur", 1, NULL, 'e' },
		{ NULL, 0, NULL, 0 },
	};
	struct loader_opts o = { .req_tier = LOADER_REQ_NONE, .interval_ns = CC_MS(200) };
	int slow_ms = 0, dur_ms = 0, c;
	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		uint64_t v = optarg ? strtoull(optarg, NULL, 10) : 0;
		switch (c) {
		case 't':
			o.stack_tier = tier_of(optarg);
			break;
		case 'r':
			o.ring_bytes = v;
			break;
		case 'm':
			o.min_block_ns = v;
			break;
		case 's':
			o.stack_min_ns = v;
			break;
		case 'd':
			slow_ms = (int)v;
			break;
		case 'e':
			dur_ms = (int)v;
			break;
		default:
			return 2;
		}
	}
	if (optind + 1 != argc)
		return 2;
	uint32_t pid = (uint32_t)strtoul(argv[optind], NULL, 10);
	o.pids = &pid;
	o.pid_cnt = 1;
	signal(SIGTERM, on_signal);
	signal(SIGINT, on_signal);
	return trace(&o, slow_ms, dur_ms);
}
