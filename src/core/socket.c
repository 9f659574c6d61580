/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets: whose they are, which is the other end of which, and what they were called for. */
#include <errno.h>
#include <string.h>

#include "request.h"

#define AF_UNIX 1 /* Linux ABI: bits/socket.h */

static struct sock *sock_get(struct requests *rs, uint64_t cookie, cc_ns at)
{
	uint32_t i = map_get(&rs->by_cookie, cookie);
	bool again = rs->free_socks.cnt > 0;
	struct sock *s;

	if (!i) {
		i = again ? rs->free_socks.p[rs->free_socks.cnt - 1] : rs->socks.cnt;
		if (vec_reserve(rs->mem, &rs->socks, i + 1) ||
		    map_put(rs->mem, &rs->by_cookie, cookie, i + 1))
			return NULL;
		rs->free_socks.cnt -= again;
		rs->socks.cnt = CC_MAX(rs->socks.cnt, i + 1);
		rs->socks.p[i++] = (struct sock){ .cookie = cookie };
	}
	s = &rs->socks.p[i - 1];
	s->seen = CC_MAX(s->seen, at);
	return s;
}

const struct sock *requests_sock(const struct requests *rs, uint64_t cookie)
{
	uint32_t i = cookie ? map_get(&rs->by_cookie, cookie) : 0;

	return i ? &rs->socks.p[i - 1] : NULL;
}

struct sock *requests_sock_of(struct requests *rs, struct cc_reqid id)
{
	return (struct sock *)requests_sock(rs, id.kind == CC_REQID_SOCK ? id.id : 0);
}

static uint64_t ports_key(uint16_t local, uint16_t remote)
{
	return (uint64_t)local << 32 | remote;
}

/* Unix sockets: the client's end has a number, and both ends know it. */
static uint64_t unix_key(const struct cc_addr *peer, bool client)
{
	uint64_t ino;

	memcpy(&ino, peer->ip + (client ? sizeof(ino) : 0), sizeof(ino));
	return ino ? 1ull << 63 | ino : 0;
}

/* Learns where the ends of @s are. @client: it is the calling one. */
static int sock_place(struct requests *rs, struct sock *s, uint16_t local_port,
		      const struct cc_addr *peer, bool client)
{
	uint64_t key = 0;

	if (peer->family == AF_UNIX)
		key = unix_key(peer, client);
	else if (local_port && peer->port)
		key = ports_key(local_port, peer->port);
	if (s->placed || !key)
		return 0;
	s->local_port = local_port;
	s->peer = *peer;
	s->ends = key;
	s->next_ports = map_get(&rs->by_ports, key);
	s->placed = true;
	return map_put(rs->mem, &rs->by_ports, key, (uint32_t)(s - rs->socks.p) + 1);
}

const struct sock *requests_mirror(const struct requests *rs, const struct sock *s)
{
	const struct sock *other = NULL;
	uint32_t i;

	if (!s->placed)
		return NULL;
	i = map_get(&rs->by_ports,
		    s->peer.family == AF_UNIX ? s->ends : ports_key(s->peer.port, s->local_port));
	for (; i; i = rs->socks.p[i - 1].next_ports) {
		const struct sock *o = &rs->socks.p[i - 1];

		/* each end names the other's address; of one's own only the family is known */
		if (o == s || o->peer.family != s->peer.family)
			continue;
		if (o->peer.family == AF_UNIX && o->upstream == s->upstream)
			continue;
		if (other)
			return NULL;
		other = o;
	}
	return other;
}

static int sock_io(struct requests *rs, struct sock *s, struct sock_io io)
{
	uint32_t i;

	if (!io.t || !io.tid)
		return 0;
	if (vec_reserve(rs->mem, &s->io, s->io.cnt + 1))
		return -ENOMEM;
	i = vec_place(&s->io, t, io.t);
	for (uint32_t j = i; j > 0 && s->io.p[j - 1].t == io.t; j--)
		if (s->io.p[j - 1].op == io.op)
			return 0;
	memmove(&s->io.p[i + 1], &s->io.p[i], (s->io.cnt - i) * sizeof(io));
	s->io.p[i] = io;
	s->io.cnt++;
	return 0;
}

int requests_req_io(struct requests *rs, const struct cc_rec_req *q)
{
	struct sock *s = sock_get(rs, q->cookie, q->h.ts);

	if (!s)
		return -ENOMEM;
	s->tid = q->recv_tid ? q->recv_tid : s->tid;
	return sock_place(rs, s, q->local_port, &q->peer, false) ?:
	       sock_io(rs, s, (struct sock_io){ q->first_recv, q->recv_tid, CC_OP_RECV }) ?:
	       sock_io(rs, s, (struct sock_io){ q->last_recv, q->recv_tid, CC_OP_RECV }) ?:
	       sock_io(rs, s, (struct sock_io){ q->first_send, request_first_sender(q), CC_OP_SEND }) ?:
	       sock_io(rs, s, (struct sock_io){ q->last_send, q->send_tid, CC_OP_SEND });
}

bool requests_link_agreed(const struct requests *rs, struct cc_reqid id, uint64_t cookie)
{
	const struct req *r = requests_find(rs, id);

	if (!r)
		return false;
	if (r->pub.rec.up_votes >= 2 && r->pub.rec.up_cookie == cookie)
		return true;
	for (uint32_t i = 0; i < r->ups.cnt; i++)
		if (r->ups.p[i].cookie == cookie && r->ups.p[i].agreed)
			return true;
	return false;
}

/* The request that an operation on an upstream socket is for: told, or that of the last send. */
static struct cc_reqid link_of(struct sock *s, const struct cc_rec_sockop *q)
{
	if (q->h.flags & CC_SO_LINKED)
		s->link = reqid_of(q->link_cookie, q->link_ordinal);
	else if (q->h.aux == CC_OP_SEND || q->h.aux == CC_OP_CONNECT)
		s->link = (struct cc_reqid){ 0 };
	return s->link;
}

static int upstream_op(struct requests *rs, struct sock *s, const struct cc_rec_sockop *q,
		       struct sock_touch *touch)
{
	struct cc_reqid link = link_of(s, q);
	struct up_op op = {
		.t = q->h.ts,
		.cookie = q->cookie,
		.op = (uint8_t)q->h.aux,
		.agreed = (q->h.flags & CC_SO_VOTE2) != 0,
	};

	s->upstream = rs->calls_told = true;
	touch->cookie = link.id;
	touch->ordinal = link.ordinal;
	if (map_put(rs->mem, &rs->upstreams, q->cookie, 1))
		return -ENOMEM;
	return link.kind ? requests_up_op(rs, link, op) : 0;
}

static bool is_touch(uint16_t op)
{
	return op == CC_OP_RECV || op == CC_OP_SEND || op == CC_OP_EAGAIN || op == CC_OP_EOF ||
	       op == CC_OP_CONNECT;
}

int requests_sockop(struct requests *rs, const struct cc_rec_sockop *q)
{
	struct sock_touch touch = {
		.t = q->h.ts,
		.cookie = q->cookie,
		.socket = q->cookie,
		.ordinal = q->ordinal,
		.op = (uint8_t)q->h.aux,
		.flags = q->h.flags,
	};
	struct sock *s;
	int err;

	if (!q->cookie || !q->h.ts)
		return -EINVAL;
	s = sock_get(rs, q->cookie, q->h.ts);
	if (!s)
		return -ENOMEM;
	err = sock_place(rs, s, q->local_port, &q->peer, q->h.flags & CC_SO_UPSTREAM);
	if (!err && (q->h.aux == CC_OP_RECV || q->h.aux == CC_OP_SEND))
		err = sock_io(rs, s, (struct sock_io){ q->h.ts, q->tid, (uint8_t)q->h.aux });
	if (err)
		return err;
	s->closed |= q->h.aux == CC_OP_CLOSE;
	if (q->h.flags & CC_SO_UPSTREAM)
		err = upstream_op(rs, s, q, &touch);
	else
		err = requests_own_op(rs, q);
	if (err)
		return err == -EEXIST ? 0 : err;
	return is_touch(q->h.aux) ? requests_touch(rs, q->tid, q->tgid, touch) : 0;
}

void requests_evict_io(struct requests *rs, cc_ns before)
{
	for (uint32_t i = 0; i < rs->socks.cnt; i++) {
		struct sock *s = &rs->socks.p[i];
		uint32_t n = vec_lower_bound(&s->io, t, before);

		if (n) {
			vec_drop_front(&s->io, n);
			vec_shrink(rs->mem, &s->io);
		}
	}
}

/* Takes socket @i off the list of those with its ports. */
static void unlink_ports(struct requests *rs, uint32_t i)
{
	struct sock *s = &rs->socks.p[i];
	uint64_t key = s->ends;
	uint32_t at = map_get(&rs->by_ports, key);

	if (at == i + 1) {
		if (!s->next_ports || map_put(rs->mem, &rs->by_ports, key, s->next_ports))
			map_del(&rs->by_ports, key);
		return;
	}
	for (; at; at = rs->socks.p[at - 1].next_ports) {
		if (rs->socks.p[at - 1].next_ports != i + 1)
			continue;
		rs->socks.p[at - 1].next_ports = s->next_ports;
		return;
	}
}

void requests_evict_socks(struct requests *rs, cc_ns before)
{
	for (uint32_t i = 0; i < rs->socks.cnt; i++) {
		struct sock *s = &rs->socks.p[i];

		if (!s->cookie || s->io.cnt || s->seen >= before || (s->upstream && !s->closed) ||
		    vec_reserve(rs->mem, &rs->free_socks, rs->free_socks.cnt + 1))
			continue;
		if (s->placed)
			unlink_ports(rs, i);
		map_del(&rs->by_cookie, s->cookie);
		if (s->upstream)
			map_del(&rs->upstreams, s->cookie);
		vec_done(rs->mem, &s->io);
		*s = (struct sock){ 0 };
		rs->free_socks.p[rs->free_socks.cnt++] = i;
	}
}
