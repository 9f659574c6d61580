/* SPDX-License-Identifier: Apache-2.0 */
/* Wakes: who gave them, in which context, and whether they tell something new. */
#include <errno.h>

#include "sched_state.h"

/* Kernel functions that serve interrupts, softirqs first. Names as in Linux 4.4 to 6.18. */
static const struct {
	const char *prefix;
	uint8_t ctx;
} irq_frames[] = {
	{ "__do_softirq", CC_CTX_SOFTIRQ },
	{ "handle_softirqs", CC_CTX_SOFTIRQ },
	{ "common_interrupt", CC_CTX_HARDIRQ },
	{ "asm_common_interrupt", CC_CTX_HARDIRQ },
	{ "sysvec_", CC_CTX_HARDIRQ },
	{ "__sysvec_", CC_CTX_HARDIRQ },
	{ "handle_irq_event", CC_CTX_HARDIRQ },
	{ "hrtimer_interrupt", CC_CTX_HARDIRQ },
	{ "el1_irq", CC_CTX_HARDIRQ },
	{ "el1_interrupt", CC_CTX_HARDIRQ },
	{ "apic_timer_interrupt", CC_CTX_HARDIRQ },
};

static int context_of_stack(const struct sched_frame *f, uint32_t cnt)
{
	bool kernel = false;

	for (uint32_t i = 0; i < cnt; i++) {
		if (!sched_frame_is_kernel(&f[i]))
			continue;
		kernel = true;
		for (size_t j = 0; j < ARRAY_SIZE(irq_frames); j++)
			if (slice_starts(f[i].text, irq_frames[j].prefix))
				return irq_frames[j].ctx;
	}
	return kernel ? CC_CTX_TASK : -1;
}

/* Who ran where the wake was given. The header's tid may be that of another pid namespace: then the
 * task that was switched in there is meant. */
static uint32_t running_tid(const struct sched_build *b, const struct sched_line *l,
			    const struct sched_cpu *c)
{
	const struct sched_thread *t;

	if (!c || c->cur == SCHED_NOBODY || c->cur == l->cur.tid)
		return l->cur.tid;
	t = sched_thread_peek(b, l->cur.tid);
	return t && t->where != SCHED_UNKNOWN ? l->cur.tid : c->cur;
}

static struct sched_wake wake_of(struct sched_build *b, const struct sched_line *l,
				 const struct sched_frame *frames, uint32_t cnt)
{
	const struct sched_cpu *c = sched_cpu_of(b, l->cpu);
	const struct sched_thread *waker;
	struct sched_wake w = { .ts = l->ts, .waker = running_tid(b, l, c) };
	int ctx = l->ctx;

	waker = sched_thread_peek(b, w.waker);
	w.waker_tgid = waker ? waker->tgid : 0;
	if (ctx < 0)
		ctx = context_of_stack(frames, cnt);
	if (c && c->soft && ctx <= CC_CTX_TASK)
		ctx = CC_CTX_SOFTIRQ;
	if (c && c->hard && ctx <= CC_CTX_TASK)
		ctx = CC_CTX_HARDIRQ;
	if (!w.waker)
		ctx = CC_CTX_IDLE;
	else if (waker && !strncmp(waker->comm, "ksoftirqd/", 10))
		ctx = CC_CTX_KSOFTIRQD;
	else if (ctx < 0)
		b->counts.no_context++;
	w.ctx = (uint8_t)CC_MAX(ctx, CC_CTX_TASK);
	return w;
}

/* A task that nothing was known of was asleep since the trace began, or before. */
static void seed(const struct sched_build *b, struct sched_thread *t)
{
	t->where = SCHED_OFF;
	t->since = b->counts.first_ns;
	t->state = SCHED_STATE_UNKNOWN;
	t->flags = CC_EP_SEEDED;
}

static int on_born(struct sched_build *b, struct sched_thread *t, const struct sched_wake *w)
{
	bool told = t->where == SCHED_OFF && t->flags & CC_EP_BORN && t->seq == 0;
	int err = 0;

	if (!told) {
		sched_thread_forget(t);
		err = sched_emit_task(&b->emit, t, CC_TASK_FORK, w->waker, w->ts);
	}
	t->where = SCHED_OFF;
	t->since = w->ts;
	t->state = 0;
	t->flags = CC_EP_BORN;
	t->wake[0] = *w;
	t->wake_cnt = 1;
	return err;
}

int sched_on_wake(struct sched_build *b, const struct sched_line *l, const struct sched_frame *f,
		  uint32_t cnt, uint64_t ustack, uint64_t kstack)
{
	struct sched_wake w = wake_of(b, l, f, cnt);
	struct sched_cpu *target = sched_cpu_of(b, l->target);
	struct sched_thread *t;

	if (target)
		target->wanted = true;
	if (l->kind == SCHED_WAKING) {
		b->counts.wakings++;
		b->wakeups = false;
	} else {
		b->counts.wakeups++;
	}
	if (l->kind == SCHED_WAKEUP && !b->wakeups)
		return 0; /* the second half of a wake that sched_waking told */
	if (!l->a.tid)
		return 0;
	t = sched_thread_of(b, l->a.tid);
	if (!t)
		return -ENOMEM;
	w.ustack = ustack;
	w.kstack = kstack;
	if (l->kind == SCHED_WAKEUP_NEW)
		return on_born(b, t, &w);
	if (t->where == SCHED_RUNNING || t->where == SCHED_LEFT) {
		t->early = w;
		return 0;
	}
	if (t->where == SCHED_UNKNOWN)
		seed(b, t);
	if (t->flags & (CC_EP_PREEMPT | CC_EP_BORN))
		return 0; /* it is runnable already */
	if (t->wake_cnt == SCHED_WAKES_MAX)
		t->wake[SCHED_WAKES_MAX - 1] = w;
	else
		t->wake[t->wake_cnt++] = w;
	return 0;
}
