/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * sock: what the socket programs share: the state of a socket, which end of a connection it is, who
 * works on it.
 *
 * They come in tiers (cfg.req_tier, a constant when the verifier looks, so that the others' code
 * costs nothing): by the socket length tracepoints; by what TCP's sequence numbers grow; by system
 * calls. In the last one a socket is found by descriptor, as a plain address: no storage can hang
 * on it, and its members must be read with care.
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
	__u64 tcp_mstamp; /* us: the last packet received or sent */
};
#pragma clang attribute pop

#define SOCK_BY_CALLS (cfg.req_tier == CC_BPF_REQ_CALLS)
/* A member of @sk, typed or a plain address. */
#define SK(sk, member) (SOCK_BY_CALLS ? BPF_CORE_READ(sk, member) : (sk)->member)

/* One per socket of interest; freed with the socket. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct req_state);
} socks __weak SEC(".maps");

/* The same where sockets are plain addresses. An address is used again: TCP's end is seen and takes
 * the entry away, other kinds are known by their inode too. The loader sets the size. */
struct sock_addr_key {
	__u64 sk;
	__u64 ino; /* 0: TCP */
};
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct sock_addr_key);
	__type(value, struct req_state);
} socks_by_addr __weak SEC(".maps");

/* One per thread that works on such sockets. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct req_task);
} sock_tasks __weak SEC(".maps");

/* Is it a process whose sockets are told? Requests of a followed one explain others': whoever
 * reads the stream knows by its TARGET that they are no rows. */
static __always_inline int sock_target(__u32 tgid) { return is_target(tgid); }

static __always_inline int sock_family_ours(struct sock *sk)
{
	__u16 family = SK(sk, __sk_common.skc_family);

	return family == AF_INET || family == AF_INET6 || family == AF_UNIX;
}

static __always_inline int sock_is_tcp(struct sock *sk)
{
	return SK(sk, __sk_common.skc_family) != AF_UNIX && SK(sk, sk_protocol) == IPPROTO_TCP;
}

static __always_inline __u32 sock_netns(struct sock *sk)
{
	return BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum);
}

static __always_inline __u64 sock_inode(struct sock *sk)
{
	struct socket_alloc___sock *so = (void *)BPF_CORE_READ(sk, sk_socket);

	return so ? BPF_CORE_READ(so, vfs_inode.i_ino) : 0;
}

/* ---- the state ---------------------------------------------------------------------------- */

static __always_inline struct sock_addr_key sock_addr_key(struct sock *sk)
{
	struct sock_addr_key k = { .sk = (__u64)sk };

	if (!sock_is_tcp(sk))
		k.ino = sock_inode(sk);
	return k;
}

static __always_inline struct req_state *sock_state(struct sock *sk)
{
	if (SOCK_BY_CALLS) {
		struct sock_addr_key k = sock_addr_key(sk);

		return bpf_map_lookup_elem(&socks_by_addr, &k);
	}
	return bpf_sk_storage_get(&socks, sk, NULL, 0);
}

/* An array, not the stack: the state is as large as that. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct req_state);
} sock_zero __weak SEC(".maps");

static __noinline struct req_state *sock_state_by_addr(struct sock *sk)
{
	struct sock_addr_key k = sock_addr_key(sk);
	struct req_state *zero;
	__u32 at = 0;

	zero = bpf_map_lookup_elem(&sock_zero, &at);
	if (zero)
		bpf_map_update_elem(&socks_by_addr, &k, zero, BPF_NOEXIST);
	return bpf_map_lookup_elem(&socks_by_addr, &k);
}

/* The state of @sk, made when there is none: then its role is RQ_ROLE_NEW. */
static __always_inline struct req_state *sock_state_make(struct sock *sk)
{
	struct req_state *s;

	if (SOCK_BY_CALLS)
		s = sock_state_by_addr(sk);
	else
		s = bpf_sk_storage_get(&socks, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!s)
		cnt_add(CC_CNT_STORAGE_FAIL, 1);
	return s;
}

static __always_inline void sock_state_drop(struct sock *sk)
{
	if (SOCK_BY_CALLS) {
		struct sock_addr_key k = sock_addr_key(sk);

		bpf_map_delete_elem(&socks_by_addr, &k);
	} else {
		bpf_sk_storage_delete(&socks, sk);
	}
}

/* ---- which end it is ---------------------------------------------------------------------- */

#include "sock_listen.h"

/* Which end of a connected unix socket this is. */
static __always_inline __u8 unix_role(struct sock *sk)
{
	__u64 addr = unix_addr(sk), peer_addr = 0;
	struct sock *peer;
	__u16 type = BPF_CORE_READ(sk, sk_type);

	if (type != SOCK_STREAM && type != SOCK_SEQPACKET)
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
	if (BPF_CORE_READ(sk, __sk_common.skc_family) == AF_UNIX)
		return unix_role(sk);
	if (BPF_CORE_READ(sk, sk_protocol) == IPPROTO_TCP)
		return sock_port_listens(sk) ? RQ_ROLE_SERVER : RQ_ROLE_UPSTREAM;
	if (BPF_CORE_READ(sk, sk_type) != SOCK_DGRAM)
		return RQ_ROLE_OTHER;
	/* UDP: connected is a client's; else who speaks first tells */
	return BPF_CORE_READ(sk, __sk_common.skc_dport) || sending ? RQ_ROLE_UPSTREAM
								   : RQ_ROLE_SERVER;
}

static __always_inline void sock_peer(struct sock *sk, struct cc_addr *a)
{
	__u16 family = BPF_CORE_READ(sk, __sk_common.skc_family);

	__builtin_memset(a, 0, sizeof(*a));
	a->family = (__u8)family;
	if (family == AF_UNIX) {
		struct sock *peer = BPF_CORE_READ((struct unix_sock *)sk, peer);
		__u64 ino[2] = { peer ? sock_inode(peer) : 0, sock_inode(sk) };

		__builtin_memcpy(a->ip, ino, sizeof(ino));
		return;
	}
	a->port = bpf_ntohs(BPF_CORE_READ(sk, __sk_common.skc_dport));
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
		__u32 ip = BPF_CORE_READ(sk, __sk_common.skc_daddr);

		__builtin_memcpy(a->ip, &ip, sizeof(ip));
	}
}

/* ---- a new state -------------------------------------------------------------------------- */

__u64 sock_next_id __weak;

/* The socket's cookie. Where it cannot be asked for and has none yet: a number of our own, of
 * another range. */
static __always_inline __u64 sock_cookie(struct sock *sk)
{
	__u64 cookie;

	if (!SOCK_BY_CALLS)
		return bpf_get_socket_cookie(sk);
	cookie = BPF_CORE_READ(sk, __sk_common.skc_cookie.counter);
	return cookie ? cookie : 1ull << 48 | __sync_fetch_and_add(&sock_next_id, 1);
}

/* TCP: what was read and written so far is known. */
static __always_inline void sock_state_seq(struct req_state *s, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	s->copied_seq = BPF_CORE_READ(tp, copied_seq);
	s->write_seq = BPF_CORE_READ(tp, write_seq);
	s->pend_seq = BPF_CORE_READ(tp, rcv_nxt);
}

/* Fills a new state. @late: the socket may be older than our attach. */
static __always_inline void sock_state_init(struct req_state *s, struct sock *sk, __u8 role,
					    int late)
{
	__u16 family = BPF_CORE_READ(sk, __sk_common.skc_family);

	s->cookie = sock_cookie(sk);
	s->netns = sock_netns(sk);
	s->conn = late ? RQ_C_LATE : 0;
	if (family == AF_UNIX) {
		s->conn |= RQ_C_UNIX;
	} else if (BPF_CORE_READ(sk, sk_protocol) == IPPROTO_TCP) {
		s->conn |= RQ_C_TCP;
		sock_state_seq(s, sk);
	} else {
		s->conn |= RQ_C_UDP;
	}
	s->local_port = family == AF_UNIX ? 0 : BPF_CORE_READ(sk, __sk_common.skc_num);
	if (role == RQ_ROLE_SERVER || role == RQ_ROLE_UPSTREAM)
		sock_peer(sk, &s->peer);
	s->role = role; /* last: makes it visible to the other programs */
}

/* Does data lie on @sk that was announced and not read? */
static __always_inline int sock_unread(struct sock *sk, const struct req_state *s)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	__u32 unread;

	if (!s->pend_first)
		return 0;
	if (!(s->conn & RQ_C_TCP))
		return 1;
	/* a FIN counts one, and is no request */
	unread = BPF_CORE_READ(tp, rcv_nxt) - BPF_CORE_READ(tp, copied_seq);
	return unread > (BPF_CORE_READ(sk, sk_shutdown) & RCV_SHUTDOWN);
}

#endif
