// SPDX-License-Identifier: Apache-2.0
#include "req_conn.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

struct conn *conn_new(uint32_t kind)
{
	struct conn *c = calloc(1, sizeof(*c));

	cr_assert(c != NULL);
	c->now = MS(1000);
	c->s.cookie = 7;
	c->s.conn = kind;
	c->s.role = RQ_ROLE_SERVER;
	return c;
}

void conn_tell(struct conn *c, uint16_t end)
{
	if (!end)
		return;
	cr_assert_lt(c->told_cnt, TOLD_MAX, "told without bound");
	struct cc_rec_req *r = &c->told[c->told_cnt++];

	memset(r, 0xee, sizeof(*r)); /* every byte must be set */
	memset(&r->h, 0, sizeof(r->h));
	r->h.aux = end;
	r->h.ts = c->now;
	req_fill(&c->s, end, r);
	req_told(&c->s);
}

struct req_op conn_op(const struct conn *c, uint64_t bytes, uint32_t tid)
{
	return (struct req_op){ .now = c->now,
				.bytes = bytes,
				.tid = tid,
				.tgid = 100,
				.copied_seq = c->copied_seq,
				.write_seq = c->write_seq,
				.left = c->rcv_nxt - c->copied_seq };
}

void conn_data(struct conn *c, uint32_t bytes)
{
	c->rcv_nxt += bytes;
	req_data(&c->s, c->now, c->rcv_nxt, c->write_seq, 0);
}

int conn_recv(struct conn *c, uint32_t bytes, uint32_t tid)
{
	struct req_op o;

	c->copied_seq += bytes;
	c->got += bytes;
	o = conn_op(c, bytes, tid);
	conn_tell(c, req_recv_ends(&c->s, &o));
	return req_recv(&c->s, &o);
}

int conn_send_event(struct conn *c, uint32_t bytes, uint32_t tid)
{
	struct req_op o = conn_op(c, bytes, tid);
	int further;

	if (req_owed(&c->s, &o)) {
		c->s.conn &= ~(uint32_t)RQ_C_OWED;
		return 1;
	}
	conn_tell(c, req_send_ends(&c->s, &o));
	further = req_send(&c->s, &o);
	conn_tell(c, req_send_tells(&c->s));
	return further;
}

int conn_send(struct conn *c, uint32_t bytes, uint32_t tid)
{
	c->write_seq += bytes;
	c->given += bytes;
	return conn_send_event(c, bytes, tid);
}

void conn_eof(struct conn *c)
{
	struct req_op o = conn_op(c, 0, 1);

	conn_tell(c, req_eof(&c->s, &o));
}

void conn_ask(struct conn *c, uint64_t ms, uint32_t bytes)
{
	c->now += MS(ms);
	conn_data(c, bytes);
	c->now += MS(1);
	conn_recv(c, bytes, 1);
}

void conn_answer(struct conn *c, uint64_t ms, uint32_t bytes)
{
	c->now += MS(ms);
	conn_send(c, bytes, 1);
}
