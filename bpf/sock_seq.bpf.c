// SPDX-License-Identifier: GPL-2.0-only
/*
 * sock_seq: requests, tier 2, for kernels without the length tracepoints (before 6.3): TCP only.
 * Tier 2b does the same from the functions themselves, where the kernel has trampolines: it could
 * not be tried on a kernel that has none.
 */
#include "sock_seq.h"

char LICENSE[] SEC("license") = "GPL";

SEC("tp_btf/tcp_rcv_space_adjust")
int BPF_PROG(cc_tcp_rcv_space_adjust, struct sock *sk) { return sock_on ? seq_read(sk) : 0; }

SEC("tp_btf/net_dev_queue")
int cc_net_dev_queue(__u64 *ctx)
{
	struct task_struct *cur = bpf_get_current_task_btf();
	struct sk_buff *skb = (void *)ctx[0];
	struct req_state *s;
	struct sock *sk;

	if (!sock_on)
		return 0;
	sk = skb->sk;
	if (!sk)
		return 0;
	s = sock_state(sk);
	if (!s || (s->role != RQ_ROLE_SERVER && s->role != RQ_ROLE_UPSTREAM) ||
	    (s->conn & RQ_C_CLOSED) || sk->__sk_common.skc_state == TCP_SYN_SENT)
		return 0;
	/* a softirq has a stack of its own, see sched.bpf.c */
	seq_written(sk, s, (__u64)ctx - (__u64)cur->stack < THREAD_SIZE ? cur : NULL);
	return 0;
}

SEC("fexit/tcp_recvmsg")
int cc_tcp_recvmsg(__u64 *ctx) { return sock_on ? seq_read((void *)ctx[0]) : 0; }

SEC("fexit/tcp_sendmsg")
int cc_tcp_sendmsg(__u64 *ctx)
{
	struct task_struct *cur = bpf_get_current_task_btf();
	struct sock *sk = (void *)ctx[0];
	struct req_state *s;

	if (!sock_on)
		return 0;
	s = state_of(sk, cur->tgid, 1);
	if (s)
		seq_written(sk, s, cur);
	return 0;
}
