/* SPDX-License-Identifier: Apache-2.0 */
/* Upstream calls of a thread that reads several requests before it goes on with any of them
 * (haproxy): for which of them a call was made is not known when it is made. But a request is
 * answered after the reply to its own call: when there are as many calls as requests, and only one
 * way to give each its own in which all replies come before the answers, that is it. Who is
 * answered right after a reply was read tells nothing: such a thread reads several replies, too,
 * before it answers any. */
#include "engine_priv.h"

#define WAYS_LOOKS_MAX 4096
#define LOOK_BACK 256u /* touches of the thread that are looked at, each way */

struct group {
	const struct task *t;
	struct req *req[LINK_GROUP_MAX];
	uint64_t call[LINK_GROUP_MAX];        /* sockets */
	cc_ns reply[LINK_GROUP_MAX];          /* when that was read; CC_NEVER: not */
	struct cc_reqid next[LINK_GROUP_MAX]; /* who was answered first after it */
	cc_ns first_read, last_call;
	uint8_t call_of[LINK_GROUP_MAX]; /* of each request */
	uint32_t req_cnt, call_cnt;
	bool fits;
};

/* A call begins at touch @i: not when it had connected before, or sends a further piece. */
static bool is_call(const struct task *t, uint32_t i)
{
	const struct sock_touch *s = &t->touches.p[i];

	if (touch_is_server(s) || (s->op != CC_OP_SEND && s->op != CC_OP_CONNECT))
		return false;
	for (uint32_t n = 0; i-- > 0 && n < LOOK_BACK; n++) {
		if (t->touches.p[i].socket != s->socket)
			continue;
		return t->touches.p[i].op == CC_OP_RECV || t->touches.p[i].op == CC_OP_EOF;
	}
	return true;
}

/* Fills in the reply to call @c, which was made at touch @i. */
static void find_reply(struct group *g, uint32_t c, uint32_t i)
{
	const struct sock_touch *v = g->t->touches.p;
	uint32_t cnt = g->t->touches.cnt;

	g->reply[c] = CC_NEVER;
	while (++i < cnt && (v[i].socket != g->call[c] || v[i].op != CC_OP_RECV))
		;
	if (i >= cnt)
		return;
	g->reply[c] = v[i].t;
	while (++i < cnt && !(touch_is_server(&v[i]) && v[i].op == CC_OP_SEND))
		;
	if (i < cnt)
		g->next[c] = touch_id(&v[i]);
}

static void add_call(struct group *g, const struct sock_touch *s)
{
	if (g->call_cnt == LINK_GROUP_MAX || s->cookie) {
		g->fits =
			false; /* too many; or one whose request is known, so it is no such turn */
		return;
	}
	g->call[g->call_cnt] = s->socket;
	g->last_call = s->t;
	find_reply(g, g->call_cnt++, (uint32_t)(s - g->t->touches.p));
}

static void add_read(struct engine *e, struct group *g, const struct sock_touch *s)
{
	struct req *r = requests_find(&e->reqs, touch_id(s));

	for (uint32_t i = 0; i < g->req_cnt; i++)
		if (g->req[i] == r)
			return;
	if (!r || g->req_cnt == LINK_GROUP_MAX)
		g->fits = false;
	else
		g->req[g->req_cnt++] = r;
	g->first_read = s->t; /* the first of them is met last */
}

/* What the thread read before the call at touch @i without going on with anything in between, and
 * all the calls that it made until it read again. */
static void find_group(struct engine *e, struct group *g, uint32_t i)
{
	const struct sock_touch *v = g->t->touches.p;
	uint32_t from = i, read;

	while (from > 0 && i - from < LOOK_BACK &&
	       !(touch_is_server(&v[from]) && v[from].op == CC_OP_RECV))
		from--;
	for (read = from + 1; read-- > 0;) {
		if (from - read > LOOK_BACK)
			g->fits = false;
		if (!g->fits || is_call(g->t, read) ||
		    (touch_is_server(&v[read]) && v[read].op == CC_OP_SEND))
			break;
		if (touch_is_server(&v[read]) && v[read].op == CC_OP_RECV)
			add_read(e, g, &v[read]);
	}
	for (uint32_t k = from + 1; k < g->t->touches.cnt && g->fits; k++) {
		if (touch_is_server(&v[k]) && v[k].op == CC_OP_RECV)
			break;
		if (is_call(g->t, k))
			add_call(g, &v[k]);
		if (k - from > LOOK_BACK)
			g->fits = false;
	}
}

static bool may_be(const struct group *g, uint32_t r, uint32_t c)
{
	return g->reply[c] < g->req[r]->pub.rec.first_send;
}

/* In how many ways requests from the @r th on can have calls that are not @taken; 2: or more. */
static uint32_t ways(struct group *g, uint32_t r, uint32_t taken, uint32_t *looks)
{
	uint32_t n = 0;

	if (r == g->req_cnt)
		return 1;
	for (uint32_t c = 0; c < g->call_cnt && n < 2; c++) {
		uint32_t more;

		if (taken >> c & 1 || !may_be(g, r, c) || ++*looks > WAYS_LOOKS_MAX)
			continue;
		more = ways(g, r + 1, taken | 1u << c, looks);
		if (more && !n)
			g->call_of[r] = (uint8_t)c;
		n += more;
	}
	return *looks > WAYS_LOOKS_MAX ? 2 : CC_MIN(n, 2u);
}

/* Its calls are for what was read in that turn: nothing was waited for in between, as a timer is,
 * and the one that was answered next after the reply to a call is one of them. */
static bool is_closed(const struct group *g)
{
	for (uint32_t c = 0; c < g->call_cnt; c++) {
		uint32_t r = 0;

		while (r < g->req_cnt && !cc_reqid_eq(g->req[r]->pub.id, g->next[c]))
			r++;
		if (r == g->req_cnt)
			return false;
	}
	return owner_one_turn(g->t, g->first_read, g->last_call);
}

static bool is_sure(struct group *g)
{
	uint32_t looks = 0;

	if (!g->fits || g->req_cnt < 2 || g->req_cnt != g->call_cnt || !is_closed(g))
		return false;
	for (uint32_t i = 0; i < g->req_cnt; i++) {
		const struct req *r = g->req[i];

		if (!r->told || r->pub.rec.up_votes > 1 || !r->pub.rec.first_send ||
		    r->pub.rec.send_tid != g->t->tid)
			return false;
	}
	return ways(g, 0, 0, &looks) == 1;
}

static void say_linked(struct engine *e, struct req *r)
{
	const struct sock *up = requests_sock(&e->reqs, r->linked_up);

	r->pub.rec.up_votes = 2;
	r->pub.rec.up_cookie = r->linked_up;
	r->pub.rec.up_calls = CC_MAX(r->pub.rec.up_calls, 1u);
	if (up)
		r->pub.rec.up_peer = up->peer;
}

int link_give(struct engine *e, const struct task *by, struct req *r, uint64_t socket, cc_ns from,
	      cc_ns to)
{
	struct task *t = (struct task *)by;
	int err = 0;

	for (uint32_t i = task_touch_from(t, from);
	     i < t->touches.cnt && t->touches.p[i].t <= to && !err; i++) {
		struct sock_touch *s = &t->touches.p[i];

		if (s->socket != socket || touch_is_server(s))
			continue;
		if (s->cookie && (r->linked_by == CC_EV_ONLY_WAY ||
				  requests_link_agreed(&e->reqs, touch_id(s), socket)))
			continue; /* of another's call */
		s->cookie = r->pub.id.id;
		s->ordinal = r->pub.id.ordinal;
		err = requests_up_op(
			&e->reqs, r->pub.id,
			(struct up_op){ .t = s->t, .cookie = socket, .op = s->op, .agreed = true });
	}
	r->linked_up = socket;
	say_linked(e, r);
	e->idle.valid = false; /* what a thread last worked on may be another request now */
	return err;
}

/* The first call that @t made after it had read @r, and before it answered it; touches.cnt: none.
 */
static uint32_t first_call(const struct task *t, const struct req *r)
{
	const struct cc_rec_req *q = &r->pub.rec;

	for (uint32_t i = task_touch_from(t, q->first_recv); i < t->touches.cnt; i++) {
		if (t->touches.p[i].t >= q->first_send)
			break;
		if (is_call(t, i))
			return i;
	}
	return t->touches.cnt;
}

int link_group(struct engine *e, struct req *r, struct req **ret, uint32_t *ret_cnt)
{
	const struct cc_rec_req *q = &r->pub.rec;
	struct group g = { .fits = true };
	int err = 0;
	uint32_t i;

	*ret_cnt = 0;
	if (!r->told || q->up_votes > 1 || !q->first_recv || !e->reqs.upstreams.cnt)
		return 0;
	if (r->linked_up) { /* told anew */
		say_linked(e, r);
		return 0;
	}
	g.t = tasks_find(&e->tasks, q->recv_tid, q->first_recv);
	i = g.t ? first_call(g.t, r) : 0;
	if (!g.t || i == g.t->touches.cnt)
		return 0;
	find_group(e, &g, i);
	if (!is_sure(&g))
		return 0;
	for (i = 0; i < g.req_cnt && !err; i++) {
		struct req *o = g.req[i];

		o->linked_by = CC_EV_ONLY_WAY;
		err = link_give(e, g.t, o, g.call[g.call_of[i]], o->pub.rec.first_recv, o->pub.end);
		ret[(*ret_cnt)++] = g.req[i];
	}
	return err;
}
