/* SPDX-License-Identifier: Apache-2.0 */
#include "sched_build.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "sched_state.h"

#define THREADS_MAX (1u << 18)
#define TICK_NS CC_S(1)

int sched_build_new(bool wakeups, cc_record_fn *fn, void *ctx, struct sched_build **ret)
{
	struct sched_build *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	b->wakeups = wakeups;
	b->emit.fn = fn;
	b->emit.ctx = ctx;
	b->emit.counts = &b->counts;
	*ret = b;
	return 0;
}

void sched_build_free(struct sched_build *b)
{
	if (!b)
		return;
	map_done(&b->emit.mem, &b->by_tid);
	vec_done(&b->emit.mem, &b->threads);
	sched_emit_done(&b->emit);
	vec_done(&b->emit.mem, &b->cpus);
	free(b);
}

const struct sched_counts *sched_build_counts(const struct sched_build *b) { return &b->counts; }

/* ---- tasks and CPUs ----------------------------------------------------------------------- */

void sched_thread_forget(struct sched_thread *t)
{
	*t = (struct sched_thread){ .tid = t->tid, .tgid = t->tgid, .nr = -2, .wait_nr = -2 };
}

struct sched_thread *sched_thread_of(struct sched_build *b, uint32_t tid)
{
	uint32_t i = map_get(&b->by_tid, tid);

	if (i)
		return &b->threads.p[i - 1];
	if (b->threads.cnt >= THREADS_MAX) {
		b->counts.no_room++;
		b->none.tid = 0;
		sched_thread_forget(&b->none);
		return &b->none;
	}
	if (vec_reserve(&b->emit.mem, &b->threads, b->threads.cnt + 1) ||
	    map_put(&b->emit.mem, &b->by_tid, tid, b->threads.cnt + 1))
		return NULL;
	i = b->threads.cnt++;
	b->threads.p[i].tid = tid;
	b->threads.p[i].tgid = 0;
	sched_thread_forget(&b->threads.p[i]);
	return &b->threads.p[i];
}

const struct sched_thread *sched_thread_peek(const struct sched_build *b, uint32_t tid)
{
	uint32_t i = map_get(&b->by_tid, tid);

	return i ? &b->threads.p[i - 1] : NULL;
}

/* Learns the name of a task. Returns 0 or an error. */
static int learn(struct sched_build *b, const struct sched_task *who, uint32_t tgid, cc_ns ts,
		 bool renamed)
{
	struct sched_thread *t;
	char comm[CC_COMM_LEN] = { 0 };

	if (!who->tid)
		return 0;
	t = sched_thread_of(b, who->tid);
	if (!t)
		return -ENOMEM;
	if (tgid && !t->tgid) {
		t->tgid = tgid;
		t->named = false;
	}
	if (who->comm.n)
		memcpy(comm, who->comm.p, CC_MIN(who->comm.n, sizeof(comm) - 1));
	if (comm[0] && (renamed || !t->comm[0]) && memcmp(comm, t->comm, sizeof(comm)) != 0) {
		memcpy(t->comm, comm, sizeof(comm));
		t->named = false;
	}
	if (t->named || !t->tid || (!t->comm[0] && !t->tgid))
		return 0;
	t->named = true;
	return sched_emit_name(&b->emit, t, ts);
}

static int meet_cpu(struct sched_build *b, uint32_t cpu)
{
	if (cpu >= SCHED_CPUS_MAX || cpu < b->cpus.cnt)
		return 0;
	if (vec_reserve(&b->emit.mem, &b->cpus, cpu + 1))
		return -ENOMEM;
	while (b->cpus.cnt <= cpu)
		b->cpus.p[b->cpus.cnt++] = (struct sched_cpu){ .cur = SCHED_NOBODY };
	return 0;
}

/* ---- coming and going --------------------------------------------------------------------- */

/* From @since to @ts it did what nobody saw. */
static void add_lost(struct sched_build *b, struct sched_thread *t, cc_ns since, cc_ns ts)
{
	uint64_t cnt = CC_MIN(CC_LOST_CNT(t->lost) + 1, CC_LOST_CNT_MAX);
	uint64_t ns = CC_MIN(CC_LOST_NS(t->lost) + (ts - since), CC_LOST_NS_MAX);

	t->lost = CC_LOST(cnt, ns);
	b->counts.unseen++;
}

/* @t is seen on a CPU though its last event was that it left one: how its wait went on after the
 * last wake, or at all, was not told. */
static int close_unseen(struct sched_build *b, struct sched_thread *t, cc_ns ts)
{
	cc_ns until = t->wake_cnt ? t->wake[t->wake_cnt - 1].ts : t->since;
	int err = sched_emit_episode(&b->emit, t, until);

	add_lost(b, t, until, ts);
	return err;
}

static int leave(struct sched_build *b, struct sched_thread *t, const struct sched_line *l)
{
	int err = 0;

	if (t->where == SCHED_OFF)
		err = close_unseen(b, t, l->ts);
	else if (t->where == SCHED_LEFT || (t->where == SCHED_RUNNING && t->cpu != l->cpu &&
					    l->cpu != SCHED_NO_CPU && t->cpu != SCHED_NO_CPU))
		add_lost(b, t, t->since, l->ts);
	if (err)
		return err;
	if (l->state & SCHED_STATE_DEAD || (t->exiting && !l->preempt)) {
		err = sched_emit_task(&b->emit, t, CC_TASK_EXIT, 0, l->ts);
		sched_thread_forget(t);
		return err;
	}
	t->where = SCHED_OFF;
	t->since = l->ts;
	t->state = l->preempt ? 0 : l->state;
	t->flags = l->preempt ? CC_EP_PREEMPT : 0;
	t->wait_nr = t->nr == -2 && b->syscalls ? -1 : t->nr;
	memcpy(t->wait_args, t->args, sizeof(t->wait_args));
	if (t->early.ts && !l->preempt) {
		t->early.ts = l->ts;
		t->wake[0] = t->early;
		t->wake_cnt = 1;
		t->flags |= CC_EP_EARLY_WAKE;
	}
	t->early.ts = 0;
	return 0;
}

static int come(struct sched_build *b, struct sched_thread *t, const struct sched_line *l)
{
	int err = 0;

	switch (t->where) {
	case SCHED_OFF:
		err = sched_emit_episode(&b->emit, t, l->ts);
		break;
	case SCHED_RUNNING:
	case SCHED_LEFT: /* it must have gone and come, unseen */
		add_lost(b, t, t->since, l->ts);
		t->since = l->ts;
		t->state = 0;
		t->flags = CC_EP_PREEMPT;
		err = sched_emit_episode(&b->emit, t, l->ts);
		break;
	case SCHED_UNKNOWN:
		break;
	}
	bool first = t->where == SCHED_UNKNOWN;

	t->where = SCHED_RUNNING;
	t->cpu = l->cpu;
	t->since = l->ts;
	t->early.ts = 0;
	return err || !first ? err : sched_emit_open(&b->emit, t, l->ts, false);
}

static int on_switch(struct sched_build *b, const struct sched_line *l, uint64_t ustack,
		     uint64_t kstack)
{
	struct sched_cpu *c = sched_cpu_of(b, l->cpu);
	struct sched_thread *t;
	uint32_t tgid = l->a.tid == l->cur.tid ? l->tgid : 0;
	int err = learn(b, &l->a, tgid, l->ts, true) ?: learn(b, &l->b, 0, l->ts, true);

	if (err)
		return err;
	if (c && c->cur != SCHED_NOBODY && c->cur != l->a.tid && c->cur) {
		t = sched_thread_of(b, c->cur);
		if (t && t->where == SCHED_RUNNING && t->cpu == l->cpu)
			t->where = SCHED_LEFT;
	}
	if (l->a.tid) {
		t = sched_thread_of(b, l->a.tid);
		if (!t)
			return -ENOMEM;
		err = leave(b, t, l);
		t->ustack = ustack;
		t->kstack = kstack;
	}
	if (l->b.tid && !err) {
		t = sched_thread_of(b, l->b.tid);
		if (!t)
			return -ENOMEM;
		err = come(b, t, l);
	}
	if (c)
		c->cur = l->b.tid;
	b->counts.switches++;
	return err;
}

/* ---- other events ------------------------------------------------------------------------- */

static int on_fork(struct sched_build *b, const struct sched_line *l)
{
	struct sched_thread *t = l->b.tid ? sched_thread_of(b, l->b.tid) : NULL;
	int err;

	if (!t)
		return l->b.tid ? -ENOMEM : 0;
	sched_thread_forget(t);
	err = sched_emit_task(&b->emit, t, CC_TASK_FORK, l->a.tid, l->ts);
	t->where = SCHED_OFF;
	t->since = l->ts;
	t->state = 0;
	t->flags = CC_EP_BORN;
	return err ?: learn(b, &l->a, 0, l->ts, false) ?: learn(b, &l->b, 0, l->ts, true);
}

static int on_exiting(struct sched_build *b, const struct sched_line *l)
{
	struct sched_thread *t = l->a.tid ? sched_thread_of(b, l->a.tid) : NULL;

	if (!t)
		return l->a.tid ? -ENOMEM : 0;
	t->exiting = true; /* it still runs, until it leaves its CPU */
	return 0;
}

static int on_exec(struct sched_build *b, const struct sched_line *l)
{
	struct sched_thread *t = l->a.tid ? sched_thread_of(b, l->a.tid) : NULL;

	if (!t)
		return l->a.tid ? -ENOMEM : 0;
	return sched_emit_task(&b->emit, t, CC_TASK_EXEC, l->b.tid, l->ts);
}

static int on_syscall(struct sched_build *b, const struct sched_line *l)
{
	struct sched_thread *t = l->cur.tid ? sched_thread_of(b, l->cur.tid) : NULL;

	if (!t)
		return l->cur.tid ? -ENOMEM : 0;
	b->syscalls = true;
	b->counts.syscalls++;
	memset(t->args, 0, sizeof(t->args));
	t->nr = -1;
	if (l->kind == SCHED_SYS_ENTER) {
		t->nr = l->nr;
		memcpy(t->args, l->args, sizeof(t->args));
	}
	return 0;
}

/* The function that it is, or was just, blocked in: as good as a stack of one frame. */
static int on_reason(struct sched_build *b, const struct sched_line *l)
{
	struct sched_thread *t = l->a.tid ? sched_thread_of(b, l->a.tid) : NULL;
	struct sched_frame f = { .text = l->text, .module = { "[kernel.kallsyms]", 17 } };
	uint64_t key;
	int err;

	if (!t)
		return l->a.tid ? -ENOMEM : 0;
	if (!f.text.n || is_digit(*f.text.p)) /* a bare address says nothing without its kernel */
		return 0;
	for (size_t i = 0; i < f.text.n; i++)
		f.addr = map_mix2(f.addr, (unsigned char)f.text.p[i]);
	f.addr |= 1ull << 63;
	err = sched_emit_stack(&b->emit, 0, true, &f, 1, &key);
	if (err)
		return err;
	if (t->where == SCHED_OFF) {
		if (!t->kstack)
			t->kstack = key;
		return 0;
	}
	return t->where == SCHED_RUNNING && t->seq ? sched_emit_reason(&b->emit, t, key) : 0;
}

static void on_irq(struct sched_build *b, const struct sched_line *l)
{
	struct sched_cpu *c = sched_cpu_of(b, l->cpu);
	uint32_t *depth = !c ? NULL : l->soft ? &c->soft : &c->hard;

	if (depth && l->kind == SCHED_IRQ_ENTER)
		*depth = 1; /* they nest in other kinds only; a lost exit does not stay for ever */
	else if (depth)
		*depth = 0;
}

/* What was lost lies between the CPU's last event and its next one. */
static int on_lost(struct sched_build *b, const struct sched_line *l)
{
	struct sched_cpu *c = sched_cpu_of(b, l->cpu);
	struct sched_thread *t;

	b->counts.lost += l->cnt;
	b->counts.lost_marks++;
	if (!c)
		return sched_emit_loss(&b->emit, b->counts.last_ns,
				       CC_MAX(l->ts, b->counts.last_ns), l->cnt);
	t = c->cur && c->cur != SCHED_NOBODY ? sched_thread_of(b, c->cur) : NULL;
	if (t && t->where == SCHED_RUNNING && t->cpu == l->cpu)
		t->where = SCHED_LEFT;
	c->cur = SCHED_NOBODY;
	c->soft = c->hard = 0;
	if (!c->lost)
		c->lost_from = c->last_ns ? c->last_ns : b->counts.first_ns;
	c->lost += l->cnt;
	return 0;
}

static int tell_lost(struct sched_build *b, struct sched_cpu *c, cc_ns to)
{
	uint64_t cnt = c->lost;

	c->lost = 0;
	return cnt ? sched_emit_loss(&b->emit, c->lost_from ? c->lost_from : to, to, cnt) : 0;
}

/* ---- the stream --------------------------------------------------------------------------- */

static int begin(struct sched_build *b, cc_ns ts)
{
	b->counts.first_ns = b->counts.last_ns = ts;
	b->next_tick = ts + TICK_NS;
	return sched_emit_option(&b->emit, CC_OPT_IMPORTED, CC_IMPORTED);
}

/* Time goes on: a TICK a second. */
static int advance(struct sched_build *b, const struct sched_line *l)
{
	struct sched_cpu *c = sched_cpu_of(b, l->cpu);
	int err = 0;

	if (!b->counts.first_ns)
		err = begin(b, l->ts);
	if (l->ts < b->counts.last_ns)
		b->counts.backwards++;
	b->counts.last_ns = CC_MAX(b->counts.last_ns, l->ts);
	if (c) {
		c->told = true;
		c->last_ns = l->ts;
		err = err ?: tell_lost(b, c, l->ts);
	}
	if (!err && l->ts >= b->next_tick) {
		b->next_tick = l->ts + TICK_NS;
		err = sched_emit_tick(&b->emit, l->ts, false);
	}
	return err;
}

static int dispatch(struct sched_build *b, const struct sched_line *l, const struct sched_frame *f,
		    uint32_t cnt, uint64_t ustack, uint64_t kstack)
{
	switch (l->kind) {
	case SCHED_SWITCH:
		return on_switch(b, l, ustack, kstack);
	case SCHED_WAKING:
	case SCHED_WAKEUP:
	case SCHED_WAKEUP_NEW:
		return sched_on_wake(b, l, f, cnt, ustack, kstack);
	case SCHED_FORK:
		b->counts.forks++;
		return on_fork(b, l);
	case SCHED_EXEC:
		return on_exec(b, l);
	case SCHED_EXIT:
		return on_exiting(b, l);
	case SCHED_RENAME:
		return learn(b, &l->a, 0, l->ts, true);
	case SCHED_SYS_ENTER:
	case SCHED_SYS_EXIT:
		return on_syscall(b, l);
	case SCHED_REASON:
		return on_reason(b, l);
	case SCHED_IRQ_ENTER:
	case SCHED_IRQ_EXIT:
		on_irq(b, l);
		return 0;
	case SCHED_NOTHING:
	case SCHED_STRANGE:
	case SCHED_LOST:
	case SCHED_FRAME:
	case SCHED_BODY_NEXT:
		break;
	}
	return 0;
}

int sched_build_event(struct sched_build *b, const struct sched_line *l,
		      const struct sched_frame *frames, uint32_t frame_cnt)
{
	const struct sched_thread *who;
	uint64_t ustack, kstack;
	int err = meet_cpu(b, l->cpu) ?: meet_cpu(b, l->target);

	if (err)
		return err;
	if (l->kind == SCHED_LOST)
		return on_lost(b, l);
	if (!l->ts && !b->counts.first_ns && l->kind == SCHED_NOTHING)
		return 0;
	err = advance(b, l);
	if (!err && l->kind != SCHED_SWITCH && l->kind != SCHED_FORK && l->kind != SCHED_NOTHING)
		err = learn(b, &l->cur, l->tgid, l->ts, false) ?: learn(b, &l->a, 0, l->ts, false);
	if (err)
		return err;
	if (l->kind != SCHED_SWITCH && l->kind != SCHED_WAKING && l->kind != SCHED_WAKEUP)
		frame_cnt = 0;
	who = sched_thread_peek(b, l->cur.tid);
	err = sched_emit_stack(&b->emit, who && who->tgid ? who->tgid : l->cur.tid, false, frames,
			       frame_cnt, &ustack)
		      ?: sched_emit_stack(&b->emit, 0, true, frames, frame_cnt, &kstack);
	return err ? err : dispatch(b, l, frames, frame_cnt, ustack, kstack);
}

static int finish_thread(struct sched_build *b, struct sched_thread *t)
{
	cc_ns last = b->counts.last_ns;
	int err = 0;

	if (t->exiting)
		return sched_emit_task(&b->emit, t, CC_TASK_EXIT, 0, last);
	if (t->where == SCHED_OFF && t->wake_cnt > 1) { /* it ran unseen, and waits for a CPU now */
		struct sched_wake w = t->wake[t->wake_cnt - 1];
		cc_ns ran = t->wake[0].ts;

		t->wake_cnt = 1;
		err = sched_emit_episode(&b->emit, t, ran);
		add_lost(b, t, ran, w.ts);
		t->since = w.ts;
		t->state = 0;
	}
	if (!err && (t->where == SCHED_OFF || t->where == SCHED_RUNNING))
		err = sched_emit_open(&b->emit, t, last, true);
	return err;
}

int sched_build_finish(struct sched_build *b)
{
	const struct sched_counts *n = &b->counts;
	uint64_t imported = CC_IMPORTED;
	int err = 0;

	if (!n->first_ns)
		return 0;
	for (uint32_t i = 0; i < b->cpus.cnt && !err; i++)
		err = tell_lost(b, &b->cpus.p[i], n->last_ns);
	for (uint32_t i = 0; i < b->threads.cnt && !err; i++)
		err = finish_thread(b, &b->threads.p[i]);
	if (n->no_context)
		imported |= CC_IMPORTED_NO_CONTEXT;
	if (b->wakeups && n->wakeups)
		imported |= CC_IMPORTED_WAKEUPS;
	return err ?: sched_emit_option(&b->emit, CC_OPT_IMPORTED, imported)
		       ?: sched_emit_tick(&b->emit, n->last_ns, true);
}

void sched_build_wall(struct sched_build *b, int64_t off) { b->emit.wall_off = off; }

uint32_t sched_build_silent_cpus(const struct sched_build *b, char *buf, size_t cap)
{
	uint32_t cnt = 0;
	size_t len = 0;

	buf[0] = '\0';
	for (uint32_t i = 0; i < b->cpus.cnt; i++) {
		if (!b->cpus.p[i].wanted || b->cpus.p[i].told)
			continue;
		if (len + 8 < cap)
			len += (size_t)snprintf(buf + len, cap - len, "%s%u", cnt ? ", " : "", i);
		cnt++;
	}
	return cnt;
}
