/* SPDX-License-Identifier: Apache-2.0 */
/* go-smoke: follows one Go process for a while and says whether that works: how its runtime was
 * understood, what the probes see, what they cost. */
#include "cli.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if HAVE_BPF
#include "fmt.h"
#include "go_find.h"
#include "go_target.h"
#include "loader.h"
#include "resolver.h"
#include "sanitize.h"
#include "stop_signal.h"
#include "tracing.h"
#include "wait_class.h"

#include <time.h>
#include <unistd.h>

#define POLL_MS 100
#define DUR_USUAL CC_S(5)
#define PROGS_MAX 64
#define SHOWN 12 /* transitions */
#define NAMES_MAX 4096

struct frame_name {
	uint64_t ip;
	char text[96];
};

enum { ITEM_GIVEN, ITEM_PUT, ITEM_TAKEN, ITEM_CNT };

struct smoke {
	uint32_t tgid;
	uint64_t episodes, born_waits, yields, woken, stacks, tasks[4], on[2], items[ITEM_CNT], io;
	uint64_t lost;
	struct cc_rec_go_episode shown[SHOWN];
	uint64_t site[SHOWN]; /* the frame that called gopark */
	uint32_t shown_cnt;
	struct frame_name *names;
	size_t name_cnt;
	struct {
		uint64_t key, ip[8];
	} stack[256];
	uint32_t stack_cnt;
	cc_ns next_show; /* spread over the time */
	cc_ns every;
};

static cc_ns now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return CC_S(t.tv_sec) + (cc_ns)t.tv_nsec;
}

/* ---- what comes ----------------------------------------------------------------------------- */

static void take_name(struct smoke *s, const struct cc_rec_name *n, size_t len)
{
	if (n->h.aux == CC_NAME_NOTE) {
		char text[512];
		sanitize_text(n->text, CC_MIN((size_t)n->len[0], len - sizeof(*n)), text,
			      sizeof(text));
		printf("  %s\n", text);
		fflush(stdout);
	}
	if (n->h.aux != CC_NAME_FRAME || n->tgid != s->tgid || s->name_cnt == NAMES_MAX)
		return;
	struct frame_name *f = &s->names[s->name_cnt++];
	f->ip = n->id;
	sanitize_text(n->text, CC_MIN((size_t)n->len[0], len - sizeof(*n)), f->text,
		      sizeof(f->text));
}

static void take_episode(struct smoke *s, const struct cc_rec_go_episode *e)
{
	bool wait = !(e->h.flags & (CC_GE_BORN | CC_GE_PREEMPT));
	if (e->h.flags & CC_GE_OPEN)
		return;
	s->episodes += wait;
	s->born_waits += !!(e->h.flags & CC_GE_BORN);
	s->yields += !!(e->h.flags & CC_GE_PREEMPT);
	s->woken += wait && e->waker_goid;
	s->stacks += e->ustack != 0;
	s->io += e->fd_kind != 0;
	s->lost += CC_LOST_CNT(e->lost);
	if (!wait || s->shown_cnt == SHOWN || e->h.ts < s->next_show || !e->ustack)
		return;
	s->next_show = e->h.ts + s->every;
	s->shown[s->shown_cnt++] = *e;
}

static void take_stack(struct smoke *s, const struct cc_rec_stack *r, size_t len)
{
	size_t cnt = CC_MIN((len - sizeof(*r)) / 8, (size_t)8);
	if (r->h.flags & CC_ST_KERNEL || s->stack_cnt == ARRAY_SIZE(s->stack))
		return;
	s->stack[s->stack_cnt].key = r->key;
	memcpy(s->stack[s->stack_cnt].ip, r->ip, cnt * 8);
	s->stack_cnt++;
}

static void take_item(struct smoke *s, const struct cc_rec_go_item *i)
{
	s->items[i->peer_goid ? ITEM_GIVEN : i->h.aux == 1 ? ITEM_PUT : ITEM_TAKEN]++;
}

static int take_record(void *ctx, const struct cc_rec *rec, size_t len)
{
	struct smoke *s = ctx;
	switch (rec->kind) {
	case CC_REC_NAME:
		if (len >= sizeof(struct cc_rec_name))
			take_name(s, (const struct cc_rec_name *)rec, len);
		break;
	case CC_REC_STACK:
		if (len >= sizeof(struct cc_rec_stack))
			take_stack(s, (const struct cc_rec_stack *)rec, len);
		break;
	case CC_REC_GO_EPISODE:
		if (len >= sizeof(struct cc_rec_go_episode))
			take_episode(s, (const struct cc_rec_go_episode *)rec);
		break;
	case CC_REC_GO_TASK:
		s->tasks[CC_MIN(rec->aux, 3)]++;
		break;
	case CC_REC_GO_ON:
		s->on[rec->aux & 1]++;
		break;
	case CC_REC_GO_ITEM:
		if (len >= sizeof(struct cc_rec_go_item))
			take_item(s, (const struct cc_rec_go_item *)rec);
		break;
	}
	return 0;
}

struct feed {
	struct smoke *smoke;
	struct resolver *resolver;
};

static int feed(void *ctx, const struct cc_rec *rec, size_t len)
{
	struct feed *f = ctx;
	return resolver_feed(f->resolver, rec, len, take_record, f->smoke);
}

/* ---- what is said --------------------------------------------------------------------------- */

static const char *name_of(const struct smoke *s, uint64_t ip)
{
	for (size_t i = s->name_cnt; i-- > 0;)
		if (s->names[i].ip == ip)
			return s->names[i].text;
	return NULL;
}

/* Does nobody who waits there think of it as his? */
static bool is_plumbing(const char *name)
{
	static const char *const of[] = { "runtime.", "internal/", "sync.", "time.Sleep" };
	for (size_t i = 0; i < ARRAY_SIZE(of); i++)
		if (!strncmp(name, of[i], strlen(of[i])))
			return true;
	return false;
}

/* The innermost frame that is not the runtime's own, nor next to it. */
static const char *site_of(const struct smoke *s, uint64_t key)
{
	const char *name = NULL;
	for (uint32_t i = 0; i < s->stack_cnt; i++) {
		if (s->stack[i].key != key)
			continue;
		for (size_t j = 0; j < ARRAY_SIZE(s->stack[i].ip); j++) {
			const char *n = name_of(s, s->stack[i].ip[j]);
			if (n && !is_plumbing(n))
				return n;
			name = name ? name : n;
		}
	}
	return name ? name : "no name";
}

static void print_program(const struct loader_go_proc *p)
{
	const struct go_target *t = p->target;
	char version[80];
	sanitize_text(t->version, strlen(t->version), version, sizeof(version));
	printf("\nversion     %s, by %s\n", version, go_found_name(t->version_by));
	printf("offsets     by %s; right on %u threads or switches, wrong on %u: %s\n",
	       go_found_name(t->layout_by), p->good, p->bad,
	       p->state == LOADER_GO_STATE_ON      ? "believed"
	       : p->state == LOADER_GO_STATE_WRONG ? "not believed, threads only"
						   : "not enough yet to be believed");
	printf("g           at thread pointer %+" PRId64 "; goid +%u, status +%u, m +%u, curg +%u, "
	       "procid +%u\n",
	       t->tls_off, t->layout.g_goid, t->layout.g_atomicstatus, t->layout.g_m,
	       t->layout.m_curg, t->layout.m_procid);
	printf("reasons     %u names of waits in the program\n", t->reasons.cnt);
	printf("tier        %s, %u probes%s\n\n", loader_go_tier_name(p->tier), p->probe_cnt,
	       !p->probe_cnt ? ""
	       : p->multi    ? ", by uprobe_multi"
			     : ", by perf events");
	printf("%-28s %-14s %s\n", "function", "instruction", "probe");
	for (unsigned int i = 0; i < GO_SITE_CNT; i++) {
		const struct go_site *s = &t->sites[i];
		if (!s->off)
			printf("%-28s %-14s\n", go_func_name(i), "not there");
		else
			printf("%-28s %-14s +%u%s%s\n", go_func_name(i), go_insn_name(s->insn),
			       s->delta, s->args ? "" : ", arguments gone",
			       s->insn == GO_INSN_STEP ? ", dear: only with --force" : "");
	}
	if (t->ready.cnt && p->multi)
		printf("%-28s %-14s at %u of %u places, in place of runtime.ready\n",
		       "who makes them ready", go_insn_name(GO_INSN_NOP5), t->ready.nops,
		       t->ready.cnt);
}

static void print_waits(const struct smoke *s, cc_ns dur)
{
	double secs = (double)dur / 1e9;
	printf("\nwaits       %" PRIu64 " (%.0f/s), %" PRIu64 " ended by a goroutine, %" PRIu64
	       " on a file or socket, %" PRIu64 " with a stack, %" PRIu64 " lost\n",
	       s->episodes, (double)s->episodes / secs, s->woken, s->io, s->stacks, s->lost);
	printf("goroutines  %" PRIu64 " born, %" PRIu64 " seen, %" PRIu64 " ended; %" PRIu64
	       " yields\n",
	       s->tasks[1], s->tasks[2], s->tasks[3], s->yields);
	printf("threads     %" PRIu64 " times another goroutine, %" PRIu64 " times none\n",
	       s->on[1], s->on[0]);
	printf("items       %" PRIu64 " handed over, %" PRIu64 " put into a buffer, %" PRIu64
	       " taken out of one\n",
	       s->items[ITEM_GIVEN], s->items[ITEM_PUT], s->items[ITEM_TAKEN]);
	if (s->shown_cnt)
		printf("\nsome waits\n");
	for (uint32_t i = 0; i < s->shown_cnt; i++) {
		const struct cc_rec_go_episode *e = &s->shown[i];
		char wait[32], runq[32], who[48] = "netpoll or a timer";
		fmt_dur(wait, sizeof(wait), (e->wake ? e->wake : e->h.ts) - e->out);
		fmt_dur(runq, sizeof(runq), e->wake ? e->h.ts - e->wake : 0);
		if (e->waker_goid)
			snprintf(who, sizeof(who), "goroutine %" PRIu64, (uint64_t)e->waker_goid);
		printf("  goroutine %-6llu %s %s in %s, woken by %s, queued %s\n", e->goid,
		       wait_class_name(e->wait_class), wait, site_of(s, e->ustack), who, runq);
	}
}

static int print_cost(struct cc_source *src, const struct loader_go_proc *g, cc_ns dur)
{
	struct loader_prog_stats p[PROGS_MAX];
	struct loader_stats st;
	int cnt = loader_prog_stats(src, p, PROGS_MAX), err = loader_stats(src, &st);
	if (cnt < 0 || err)
		return cnt < 0 ? cnt : err;
	printf("\n%-16s %10s %8s %8s %9s\n", "program", "runs", "runs/s", "ns/run", "of a CPU");
	for (int i = 0; i < cnt; i++) {
		if (strncmp(p[i].name, "go_", 3) || !p[i].run_cnt || strcmp(p[i].section, "uprobe"))
			continue;
		printf("%-16s %10" PRIu64 " %8.0f %8.0f %8.2f%%\n", p[i].name, p[i].run_cnt,
		       (double)p[i].run_cnt * 1e9 / (double)dur,
		       (double)p[i].run_time_ns / (double)p[i].run_cnt,
		       100.0 * (double)p[i].run_time_ns / (double)dur);
	}
	if (g->trap_ns)
		printf("and for each run what the trap costs here: %.1f us, %.1f us on a nop of 5 "
		       "bytes, some 13 times as much where single-stepped\n",
		       (double)g->trap_ns / 1e3, (double)g->nop_ns / 1e3);
	printf("\nring        fullest %.1f %%; %" PRIu64 " Go records did not fit\n",
	       100.0 * (double)st.ring_fill_max / (double)st.ring_bytes,
	       st.counters[CC_CNT_DROP_GO]);
	return 0;
}

static enum cli_exit report(struct smoke *s, struct cc_source *src, cc_ns dur)
{
	struct loader_go_proc p;
	if (loader_go_procs(src, &p, 1) != 1)
		return cli_fail(CLI_FAILED,
				"pid %u is no Go program that can be followed; "
				"it is traced by threads only",
				s->tgid);
	print_program(&p);
	print_waits(s, dur);
	int err = print_cost(src, &p, dur);
	if (err)
		return cli_fail(CLI_FAILED, "reading the programs' counts: %s", strerror(-err));
	return p.state == LOADER_GO_STATE_ON ? CLI_OK : CLI_FAILED;
}

static enum cli_exit follow(struct smoke *s, struct collect_opts *c, cc_ns dur)
{
	struct feed f = { .smoke = s, .resolver = c->resolver };
	int fd = stop_signal_open(), err = fd < 0 ? fd : 0;
	cc_ns start = now_ns(), end = start + dur;
	s->every = dur / (SHOWN + 1);
	while (!err && now_ns() < end && !stop_signal_came(fd)) {
		int n = c->source->ops->poll(c->source, POLL_MS, feed, &f);
		if (n == -ENODATA)
			break;
		err = n < 0 ? n : 0;
	}
	if (fd >= 0)
		close(fd);
	return err ? tracing_failed(err) : report(s, c->source, now_ns() - start);
}

int cmd_go_smoke(int argc, char **argv)
{
	struct cli_opts o;
	struct collect_opts c = { 0 };
	struct smoke s = { 0 };
	enum cli_exit ret = cli_parse(CLI_GO_SMOKE, argc, argv, 0, 0, &o);
	if (ret || o.help_shown)
		return ret;
	if (o.pid_cnt != 1)
		return cli_fail(CLI_USAGE, "go-smoke follows one process: --pid N");
	if (!strcmp(o.go, "auto"))
		o.go = "full"; /* every status change: the most that can be seen, and go wrong */
	o.count_runs = true;
	tracing_go_first();
	s.tgid = o.pids[0];
	s.names = calloc(NAMES_MAX, sizeof(*s.names));
	ret = s.names ? tracing_open(&o, &c) : tracing_failed(-ENOMEM);
	if (!ret)
		ret = follow(&s, &c, o.dur ? o.dur : DUR_USUAL);
	collect_opts_drop(&c);
	free(s.names);
	return cli_finish_stdout(ret);
}

#else /* built with BPF=0 */

int cmd_go_smoke(int argc, char **argv)
{
	struct cli_opts o;
	enum cli_exit bad = cli_parse(CLI_GO_SMOKE, argc, argv, 0, 0, &o);
	if (bad || o.help_shown)
		return bad;
	return cli_fail(CLI_CANNOT_TRACE, "built without live tracing (BPF=0); build with `make`");
}

#endif
