// SPDX-License-Identifier: GPL-2.0-only
/* rare: events that come seldom and that slow waits are explained with: moved while queued, an
 * expired timer, a segment sent again. Each is optional. */
#include "throttle.h"

char LICENSE[] SEC("license") = "GPL";

SEC("tp_btf/sched_migrate_task")
int BPF_PROG(sched_migrate_task, struct task_struct *p)
{
	struct task_state *st = task_find(p);

	if (!st || !task_off(st))
		return 0;
	/* choosing the CPU of a wake-up comes here too, but then it has not been queued yet */
	if ((st->now & CC_EP_PREEMPT) || (st->wake >= st->out && p->on_rq)) {
		st->migrated = bpf_ktime_get_ns();
		throttle_moved(p, st, st->migrated);
	}
	return 0;
}

SEC("tp_btf/hrtimer_expire_entry")
int BPF_PROG(hrtimer_expire_entry, struct hrtimer *t)
{
	struct cpu_state *c = this_cpu();

	if (c)
		c->hrtimer_fn = (__u64)t->function;
	return 0;
}

SEC("tp_btf/hrtimer_expire_exit")
int BPF_PROG(hrtimer_expire_exit)
{
	struct cpu_state *c = this_cpu();

	if (c)
		c->hrtimer_fn = 0;
	return 0;
}

SEC("tp_btf/timer_expire_entry")
int BPF_PROG(timer_expire_entry, struct timer_list *t)
{
	struct cpu_state *c = this_cpu();

	if (c)
		c->timer_fn = (__u64)t->function;
	return 0;
}

SEC("tp_btf/timer_expire_exit")
int BPF_PROG(timer_expire_exit)
{
	struct cpu_state *c = this_cpu();

	if (c)
		c->timer_fn = 0;
	return 0;
}

SEC("tp_btf/irq_handler_entry")
int BPF_PROG(irq_handler_entry)
{
	struct cpu_state *c = this_cpu();

	if (c)
		c->in_irq = 1;
	return 0;
}

SEC("tp_btf/irq_handler_exit")
int BPF_PROG(irq_handler_exit)
{
	struct cpu_state *c = this_cpu();

	if (c)
		c->in_irq = 0;
	return 0;
}

SEC("tp_btf/tcp_retransmit_skb")
int BPF_PROG(tcp_retransmit_skb, struct sock *sk)
{
	__u64 key = (__u64)sk;
	struct retrans *r, first = {};

	r = bpf_map_lookup_elem(&retrans, &key);
	if (r) {
		r->ts[r->cnt++ & (RETRANS - 1)] = bpf_ktime_get_ns();
		return 0;
	}
	first.ts[0] = bpf_ktime_get_ns();
	first.cnt = 1;
	bpf_map_update_elem(&retrans, &key, &first, BPF_NOEXIST);
	return 0;
}
