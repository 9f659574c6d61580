/* SPDX-License-Identifier: GPL-2.0-only */
/* sock_listen: where targets listen. Part of sock.h. */
#ifndef CC_BPF_SOCK_LISTEN_H
#define CC_BPF_SOCK_LISTEN_H

struct sock_port {
	__u32 netns;
	__u16 port;
	__u16 pad;
};

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

static __always_inline struct sock_port sock_port_key(struct sock *sk)
{
	struct sock_port k = { .netns = sock_netns(sk),
			       .port = BPF_CORE_READ(sk, __sk_common.skc_num) };

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
	r->family = BPF_CORE_READ(sk, __sk_common.skc_family);
	r->netns = s->netns;
	control_commit(r, now);
}

#endif
