/* SPDX-License-Identifier: GPL-2.0-only */
/* sock: what sock.bpf.c and sock_iter.bpf.c share: their maps, and what a socket is to the target.
 */
#ifndef CC_BPF_SOCK_H
#define CC_BPF_SOCK_H

#include "maps.h" /* first: kernel types */

#include "req_link.h"
#include "sock_walk.h"

#include <bpf/bpf_endian.h>

#define AF_UNIX 1
#define AF_INET 2
#define AF_INET6 10
#define SOCK_STREAM 1
#define SOCK_DGRAM 2
#define SOCK_SEQPACKET 5
#define IPPROTO_TCP 6
#define SOCK_NOSPACE_BIT (1ul << 2)
#define RCV_SHUTDOWN 1

enum { /* include/net/tcp_states.h; unix sockets use the first and LISTEN */
       TCP_ESTABLISHED = 1,
       TCP_SYN_SENT = 2,
       TCP_SYN_RECV = 3,
       TCP_FIN_WAIT1 = 4,
       TCP_CLOSE = 7,
       TCP_CLOSE_WAIT = 8,
       TCP_LAST_ACK = 9,
       TCP_LISTEN = 10,
};

/* Members that only the socket programs read: CO-RE flavours of the types in kernel.h. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct sk_buff_head___sock {
	__u32 qlen;
};
struct sock___sock {
	struct sk_buff_head___sock sk_receive_queue;
};
struct socket___sock {
	unsigned long flags;
};
struct udp_sock___sock {
	struct sk_buff_head___sock reader_queue; /* since 4.13 */
};
struct socket_alloc___sock {
	struct inode vfs_inode;
};
struct inet_connection_sock___sock {
	struct {
		__u32 lrcvtime; /* jiffies of the last data received */
	} icsk_ack;
};
struct tcp_sock___sock {
	__u32 lsndtime; /* jiffies of the last data sent */
	__u64 bytes_received;
	__u64 bytes_sent;
};
#pragma clang attribute pop

struct sock_port {
	__u32 netns;
	__u16 port;
	__u16 pad;
};

/* One per socket of interest; freed with the socket. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct req_state);
} socks __weak SEC(".maps");

/* One per thread that works on such sockets. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct req_task);
} sock_tasks __weak SEC(".maps");

/* Ports that targets listen on: number of their listening sockets (SO_REUSEPORT). A connection is
 * a server's when its local port is here. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct sock_port);
	__type(value, __u32);
} listen_ports __weak SEC(".maps");

/* Addresses that targets listen on, unix: an accepted socket shares its listener's address object.
 * Key: that kernel pointer. listen() on a unix socket is not traced: known from the seeding or from
 * the first accepted socket that is worked on. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64);
	__type(value, __u32);
} listen_unix __weak SEC(".maps");

/* Is it a process whose sockets are told? Requests of a followed one explain others': whoever
 * reads the stream knows by its TARGET that they are no rows. */
static __always_inline int sock_target(__u32 tgid) { return is_target(tgid); }

static __always_inline __u32 sock_netns(struct sock *sk)
{
	return BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum);
}

static __always_inline struct sock_port sock_port_key(struct sock *sk)
{
	struct sock_port k = { .netns = sock_netns(sk), .port = sk->__sk_common.skc_num };

	return k;
}

static __always_inline int sock_port_listens(struct sock *sk)
{
	struct sock_port k = sock_port_key(sk);

	return bpf_map_lookup_elem(&listen_ports, &k) != NULL;
}

static __always_inline void sock_listen_add(struct sock *sk)
{
	struct sock_port k = sock_port_key(sk);
	__u32 one = 1, *cnt = bpf_map_lookup_elem(&listen_ports, &k);

	if (cnt)
		__sync_fetch_and_add(cnt, 1);
	else
		bpf_map_update_elem(&listen_ports, &k, &one, BPF_ANY);
}

/* By what was noted at listen(): a closed socket may have lost its port already. */
static __always_inline void sock_listen_del(const struct req_state *s)
{
	struct sock_port k = { .netns = (__u32)s->netns, .port = s->local_port };
	__u32 *cnt = bpf_map_lookup_elem(&listen_ports, &k);

	if (!cnt)
		return;
	if (*cnt > 1)
		__sync_fetch_and_add(cnt, -1);
	else
		bpf_map_delete_elem(&listen_ports, &k);
}

static __always_inline __u64 unix_addr(struct sock *sk)
{
	return (__u64)BPF_CORE_READ((struct unix_sock *)sk, addr);
}

static __always_inline void unix_listen_add(__u64 addr)
{
	__u32 one = 1;

	if (addr)
		bpf_map_update_elem(&listen_unix, &addr, &one, BPF_ANY);
}

/* Which end of a connected unix socket this is. */
static __always_inline __u8 unix_role(struct sock *sk)
{
	__u64 addr = unix_addr(sk), peer_addr = 0;
	struct sock *peer;

	if (sk->sk_type != SOCK_STREAM && sk->sk_type != SOCK_SEQPACKET)
		return RQ_ROLE_OTHER;
	if (addr && bpf_map_lookup_elem(&listen_unix, &addr))
		return RQ_ROLE_SERVER;
	peer = BPF_CORE_READ((struct unix_sock *)sk, peer);
	if (peer)
		peer_addr = unix_addr(peer);
	if (addr && !peer_addr) {
		unix_listen_add(addr);
		return RQ_ROLE_SERVER;
	}
	return !addr && peer_addr ? RQ_ROLE_UPSTREAM : RQ_ROLE_OTHER;
}

/* Which end @sk is of a connection or exchange that a target works on. @sending: first seen so. */
static __always_inline __u8 sock_role(struct sock *sk, int sending)
{
	if (sk->__sk_common.skc_family == AF_UNIX)
		return unix_role(sk);
	if (sk->sk_protocol == IPPROTO_TCP)
		return sock_port_listens(sk) ? RQ_ROLE_SERVER : RQ_ROLE_UPSTREAM;
	if (sk->sk_type != SOCK_DGRAM)
		return RQ_ROLE_OTHER;
	/* UDP: connected is a client's; else who speaks first tells */
	return sk->__sk_common.skc_dport || sending ? RQ_ROLE_UPSTREAM : RQ_ROLE_SERVER;
}

static __always_inline void sock_peer(struct sock *sk, struct cc_addr *a)
{
	__u16 family = sk->__sk_common.skc_family;

	__builtin_memset(a, 0, sizeof(*a));
	a->family = (__u8)family;
	if (family == AF_UNIX) {
		struct socket_alloc___sock *so;
		unsigned long ino = 0;

		so = (void *)BPF_CORE_READ((struct unix_sock *)sk, peer, sk_socket);
		if (so)
			ino = BPF_CORE_READ(so, vfs_inode.i_ino);
		__builtin_memcpy(a->ip, &ino, sizeof(ino));
		return;
	}
	a->port = bpf_ntohs(sk->__sk_common.skc_dport);
	if (family == AF_INET6) {
		struct in6_addr in6;

		BPF_CORE_READ_INTO(&in6, sk, __sk_common.skc_v6_daddr);
		if (in6.in6_u.u6_addr32[0] || in6.in6_u.u6_addr32[1] ||
		    in6.in6_u.u6_addr32[2] != bpf_htonl(0xffff)) {
			__builtin_memcpy(a->ip, &in6, sizeof(a->ip));
			return;
		}
		a->family = AF_INET; /* a v4 peer of a v6 socket */
	}
	{
		__u32 ip = sk->__sk_common.skc_daddr;

		__builtin_memcpy(a->ip, &ip, sizeof(ip));
	}
}

/* Fills a new state. @late: the socket may be older than our attach. */
static __always_inline void sock_state_init(struct req_state *s, struct sock *sk, __u8 role,
					    int late)
{
	__u16 family = sk->__sk_common.skc_family;
	struct tcp_sock *tp;

	s->cookie = bpf_get_socket_cookie(sk);
	s->netns = sock_netns(sk);
	s->conn = late ? RQ_C_LATE : 0;
	if (family == AF_UNIX) {
		s->conn |= RQ_C_UNIX;
	} else if (sk->sk_protocol == IPPROTO_TCP) {
		s->conn |= RQ_C_TCP;
		tp = bpf_skc_to_tcp_sock(sk);
		if (tp) {
			s->copied_seq = tp->copied_seq;
			s->write_seq = tp->write_seq;
			s->pend_seq = tp->rcv_nxt;
		}
	} else {
		s->conn |= RQ_C_UDP;
	}
	s->local_port = family == AF_UNIX ? 0 : sk->__sk_common.skc_num;
	if (role == RQ_ROLE_SERVER || role == RQ_ROLE_UPSTREAM)
		sock_peer(sk, &s->peer);
	s->role = role; /* last: makes it visible to the other programs */
}

static __always_inline int sock_family_ours(struct sock *sk)
{
	__u16 family = sk->__sk_common.skc_family;

	return family == AF_INET || family == AF_INET6 || family == AF_UNIX;
}

/* Does data lie on @sk that was announced and not read? */
static __always_inline int sock_unread(struct sock *sk, const struct req_state *s)
{
	struct tcp_sock *tp;

	if (!s->pend_first)
		return 0;
	if (!(s->conn & RQ_C_TCP))
		return 1;
	tp = bpf_skc_to_tcp_sock(sk); /* a FIN counts one, and is no request */
	return tp && tp->rcv_nxt - tp->copied_seq > (sk->sk_shutdown & RCV_SHUTDOWN);
}

/* LISTEN: the listening socket @sk of state @s is there (@on), or no more. */
static __always_inline void tell_listen(struct sock *sk, const struct req_state *s, __u16 on)
{
	const struct cc_bpf_target *t = target_of(s->owner);
	__u64 now = bpf_ktime_get_ns();
	struct cc_rec_listen *r;

	if (!t || t->flags & CC_TF_FOLLOWED)
		return; /* its port is none that is looked at */
	r = bpf_ringbuf_reserve(&control, sizeof(*r), 0);
	if (!r) {
		rec_lost(CC_REC_LISTEN, sizeof(*r), now);
		return;
	}
	rec_init(&r->h, sizeof(*r), CC_REC_LISTEN, 0, on, now);
	r->cookie = s->cookie;
	r->tgid = s->owner;
	r->port = s->local_port;
	r->family = sk->__sk_common.skc_family;
	r->netns = s->netns;
	control_commit(r, now);
}

#endif
