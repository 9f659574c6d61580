/* SPDX-License-Identifier: Apache-2.0 */
#include "request.h"

#include <errno.h>
#include <string.h>

#include "decode.h" /* CC_TIME_MAX */

void requests_init(struct requests *rs, struct mem *mem, struct tasks *tasks)
{
	*rs = (struct requests){
		.mem = mem,
		.tasks = tasks,
		.slab.size = sizeof(struct req),
		.op_slab.size = VEC_FIRST * sizeof(struct req_op),
		.held_slab.size = VEC_FIRST * sizeof(struct held),
	};
}

static void req_done(struct requests *rs, struct req *r)
{
	path_drop(rs->mem, &r->pub);
	vec_done_short(rs->mem, &rs->op_slab, &r->ops);
	vec_done(rs->mem, &r->ups);
	vec_done_short(rs->mem, &rs->held_slab, &r->holds);
}

void requests_done(struct requests *rs)
{
	for (uint32_t i = 0; i < rs->v.cnt; i++)
		if (rs->v.p[i])
			req_done(rs, rs->v.p[i]);
	for (uint32_t i = 0; i < rs->socks.cnt; i++)
		vec_done(rs->mem, &rs->socks.p[i].io);
	for (int i = 0; i < LIST_CNT; i++)
		vec_done(rs->mem, &rs->list[i]);
	slab_done(rs->mem, &rs->slab);
	slab_done(rs->mem, &rs->op_slab);
	slab_done(rs->mem, &rs->held_slab);
	latencies_done(rs->mem, &rs->lat);
	vec_done(rs->mem, &rs->shown);
	vec_done(rs->mem, &rs->untimed);
	vec_done(rs->mem, &rs->v);
	vec_done(rs->mem, &rs->free);
	vec_done(rs->mem, &rs->socks);
	vec_done(rs->mem, &rs->free_socks);
	vec_done(rs->mem, &rs->news);
	vec_done(rs->mem, &rs->fresh_ends);
	map_done(rs->mem, &rs->by_id);
	map_done(rs->mem, &rs->by_cookie);
	map_done(rs->mem, &rs->by_ports);
	map_done(rs->mem, &rs->upstreams);
}

static uint64_t id_key(struct cc_reqid id)
{
	return map_join(id.id, (uint64_t)id.kind << 32 | id.ordinal);
}

struct req *requests_find(const struct requests *rs, struct cc_reqid id)
{
	uint32_t i = map_get(&rs->by_id, id_key(id));

	for (; i; i = rs->v.p[i - 1]->next)
		if (cc_reqid_eq(rs->v.p[i - 1]->pub.id, id))
			return rs->v.p[i - 1];
	return NULL;
}

struct req *requests_get(struct requests *rs, struct cc_reqid id)
{
	struct req *r = requests_find(rs, id);
	uint64_t key = id_key(id);
	uint32_t i;

	if (r)
		return r;
	if (!rs->free.cnt && vec_reserve(rs->mem, &rs->v, rs->v.cnt + 1))
		return NULL;
	r = slab_alloc(rs->mem, &rs->slab);
	if (!r)
		return NULL;
	i = rs->free.cnt ? rs->free.p[rs->free.cnt - 1] : rs->v.cnt;
	*r = (struct req){ .pub.id = id, .slot = i, .next = map_get(&rs->by_id, key) };
	if (map_put(rs->mem, &rs->by_id, key, i + 1)) {
		slab_free(rs->mem, &rs->slab, r);
		return NULL;
	}
	if (rs->free.cnt)
		rs->free.cnt--;
	else
		rs->v.cnt++;
	rs->v.p[i] = r;
	return r;
}

void requests_drop(struct requests *rs, struct req *r)
{
	uint64_t key = id_key(r->pub.id);
	uint32_t first = map_get(&rs->by_id, key), me = r->slot + 1;

	if (first != me) {
		struct req *before = rs->v.p[first - 1];

		while (before->next != me)
			before = rs->v.p[before->next - 1];
		before->next = r->next;
	} else if (!r->next || map_put(rs->mem, &rs->by_id, key, r->next)) {
		map_del(&rs->by_id, key);
	}
	rs->v.p[r->slot] = NULL;
	if (!vec_reserve(rs->mem, &rs->free, rs->free.cnt + 1))
		rs->free.p[rs->free.cnt++] = r->slot;
	req_done(rs, r);
	slab_free(rs->mem, &rs->slab, r);
}

/* ---- operations of threads ---------------------------------------------------------------- */

int requests_touch(struct requests *rs, uint32_t tid, uint32_t tgid, struct sock_touch s)
{
	struct task *t;
	uint32_t i;

	if (!tid)
		return 0;
	t = tasks_get(rs->tasks, tid, s.t);
	if (!t || vec_reserve(rs->mem, &t->touches, t->touches.cnt + 1))
		return -ENOMEM;
	if (!t->tgid)
		task_set_tgid(rs->tasks, t, tgid);
	task_ran_at(t, s.t);
	i = vec_place(&t->touches, t, s.t);
	memmove(&t->touches.p[i + 1], &t->touches.p[i], (t->touches.cnt - i) * sizeof(s));
	t->touches.p[i] = s;
	t->touches.cnt++;
	if (s.t >= rs->worked_to)
		return 0;
	if (vec_reserve(rs->mem, &rs->news, rs->news.cnt + 1))
		return -ENOMEM;
	rs->news.p[rs->news.cnt++] = (struct req_news){ s.t, s.t, tid, false };
	return 0;
}

static void del_touch(struct requests *rs, uint32_t tid, cc_ns at, struct cc_reqid id)
{
	struct task *t = tasks_find(rs->tasks, tid, at);

	if (!t)
		return;
	for (uint32_t i = task_touch_from(t, at); i < t->touches.cnt && t->touches.p[i].t == at;
	     i++) {
		if (!t->touches.p[i].from_req || !cc_reqid_eq(touch_id(&t->touches.p[i]), id))
			continue;
		t->touches.cnt--;
		memmove(&t->touches.p[i], &t->touches.p[i + 1],
			(t->touches.cnt - i) * sizeof(t->touches.p[0]));
		return;
	}
}

static int add_op(struct requests *rs, struct req *r, struct req_op op)
{
	uint32_t i;

	if (vec_reserve_short(rs->mem, &rs->op_slab, &r->ops, r->ops.cnt + 1))
		return -ENOMEM;
	i = vec_place(&r->ops, t, op.t);
	memmove(&r->ops.p[i + 1], &r->ops.p[i], (r->ops.cnt - i) * sizeof(op));
	r->ops.p[i] = op;
	r->ops.cnt++;
	return 0;
}

static void del_op(struct req *r, uint32_t i)
{
	r->ops.cnt--;
	memmove(&r->ops.p[i], &r->ops.p[i + 1], (r->ops.cnt - i) * sizeof(r->ops.p[0]));
}

static bool has_op(const struct req *r, cc_ns t, unsigned int op)
{
	for (uint32_t i = vec_lower_bound(&r->ops, t, t); i < r->ops.cnt && r->ops.p[i].t == t; i++)
		if (r->ops.p[i].op == op)
			return true;
	return false;
}

/* A time of a REQ. A SOCKOP that told the same operation knows the thread better. */
static int req_time(struct requests *rs, struct req *r, cc_ns t, uint32_t tid, uint8_t op)
{
	const struct cc_rec_req *q = &r->pub.rec;
	int err;

	if (!t || !tid || has_op(r, t, op))
		return 0;
	err = add_op(rs, r, (struct req_op){ t, tid, op, true });
	if (err)
		return err;
	return requests_touch(rs, tid, q->tgid,
			      (struct sock_touch){ .t = t,
						   .cookie = q->cookie,
						   .socket = q->cookie,
						   .ordinal = q->ordinal,
						   .op = op,
						   .from_req = true });
}

static bool req_tells(const struct cc_rec_req *q, const struct req_op *op)
{
	if (op->op == CC_OP_RECV)
		return op->tid == q->recv_tid && (op->t == q->first_recv || op->t == q->last_recv);
	return (op->tid == request_first_sender(q) && op->t == q->first_send) ||
	       (op->tid == q->send_tid && op->t == q->last_send);
}

static int set_times(struct requests *rs, struct req *r)
{
	const struct cc_rec_req *q = &r->pub.rec;
	int err;

	for (uint32_t i = r->ops.cnt; i-- > 0;) {
		struct req_op op = r->ops.p[i];

		if (!op.from_req || req_tells(q, &op))
			continue; /* told the same again: no news */
		del_touch(rs, op.tid, op.t, r->pub.id);
		del_op(r, i);
	}
	err = req_time(rs, r, q->first_recv, q->recv_tid, CC_OP_RECV) ?:
	      req_time(rs, r, q->last_recv, q->recv_tid, CC_OP_RECV) ?:
	      req_time(rs, r, q->first_send, request_first_sender(q), CC_OP_SEND) ?:
	      req_time(rs, r, q->last_send, q->send_tid, CC_OP_SEND);
	return err;
}

static bool times_ok(const struct cc_rec_req *r)
{
	cc_ns last = CC_MAX(CC_MAX(r->arrival, r->first_recv), CC_MAX(r->last_recv, r->first_send));

	last = CC_MAX(last, CC_MAX(r->last_send, r->accepted));
	return r->cookie && last <= CC_TIME_MAX;
}

/* From its first byte to its last. */
static void set_span(struct cc_request *p)
{
	const struct cc_rec_req *q = &p->rec;
	cc_ns first = q->arrival;

	if (!first || (q->first_recv && q->first_recv < first))
		first = q->first_recv;
	if (!first)
		first = q->first_send ? q->first_send : q->last_send;
	if (!first)
		first = q->h.ts;
	p->start = first;
	p->end = CC_MAX(first, q->last_send ? q->last_send : q->h.ts);
}

static int learn_receiver(struct requests *rs, const struct cc_rec_req *q)
{
	struct task *t = tasks_get(rs->tasks, q->recv_tid, q->first_recv);
	struct receiver who;

	if (!t)
		return -ENOMEM;
	if (!t->comm[0])
		task_set_comm(t, q->comm);
	who.task = (uint32_t)(t - rs->tasks->v.p);
	who.tgid = q->tgid;
	who.port = q->local_port;
	for (uint32_t i = 0; i < rs->receiver_cnt; i++)
		if (rs->receivers[i].task == who.task)
			return 0;
	if (rs->receiver_cnt < RECEIVERS_MAX)
		rs->receivers[rs->receiver_cnt++] = who;
	return 0;
}

int requests_req(struct requests *rs, const struct cc_rec_req *q)
{
	bool open = q->h.kind == CC_REC_OPEN_REQ;
	struct req *r;
	int err;

	if (!times_ok(q))
		return -EINVAL;
	r = requests_get(rs, reqid_of(q->cookie, q->ordinal));
	if (!r)
		return -ENOMEM;
	r->seen = CC_MAX(r->seen, q->h.ts);
	if (open && r->told)
		return 0; /* the iterator ran before it ended, or it waits to be resumed */
	requests_unfinish(rs, r);
	r->told = !open;
	r->open = open;
	r->computed = false;
	r->pub.rec = *q;
	rs->calls_told |= q->up_votes != 0;
	rs->busy_told |= (q->what & CC_RQ_BUSY) != 0;
	if (request_is_farewell(q))
		r->pub.rec.what |= CC_RQ_FAREWELL;
	r->pub.state = open                      ? CC_RQS_IN_FLIGHT
		       : q->what & CC_RQ_RESUMED ? CC_RQS_RESUMED
						 : CC_RQS_DONE;
	r->pub.recv_tid = q->recv_tid;
	r->pub.tid = q->send_tid ? q->send_tid : q->recv_tid;
	r->pub.tgid = q->tgid;
	set_span(&r->pub);
	err = requests_list(rs, open ? LIST_OPEN : LIST_DUE, r) ?: set_times(rs, r);
	if (!err && q->recv_tid)
		err = learn_receiver(rs, q);
	return err ? err : requests_req_io(rs, &r->pub.rec);
}

int requests_own_op(struct requests *rs, const struct cc_rec_sockop *q)
{
	struct req *r;

	if (!q->ordinal ||
	    (q->h.aux != CC_OP_RECV && q->h.aux != CC_OP_SEND && q->h.aux != CC_OP_EAGAIN))
		return 0;
	r = requests_get(rs, reqid_of(q->cookie, q->ordinal));
	if (!r)
		return -ENOMEM;
	r->seen = CC_MAX(r->seen, q->h.ts);
	for (uint32_t i = vec_lower_bound(&r->ops, t, q->h.ts);
	     i < r->ops.cnt && r->ops.p[i].t == q->h.ts; i++) {
		struct req_op op = r->ops.p[i];

		if (op.op != q->h.aux)
			continue;
		if (!op.from_req)
			return -EEXIST;
		del_touch(rs, op.tid, op.t, r->pub.id);
		del_op(r, i);
		break;
	}
	return add_op(rs, r, (struct req_op){ q->h.ts, q->tid, (uint8_t)q->h.aux, false });
}

int requests_up_op(struct requests *rs, struct cc_reqid link, struct up_op op)
{
	struct req *r = requests_get(rs, link);
	uint32_t i;

	if (!r || vec_reserve(rs->mem, &r->ups, r->ups.cnt + 1))
		return -ENOMEM;
	r->seen = CC_MAX(r->seen, op.t);
	i = vec_place(&r->ups, t, op.t);
	memmove(&r->ups.p[i + 1], &r->ups.p[i], (r->ups.cnt - i) * sizeof(op));
	r->ups.p[i] = op;
	r->ups.cnt++;
	return 0;
}

void requests_evict_receivers(struct requests *rs)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < rs->receiver_cnt; i++)
		if (rs->tasks->v.p[rs->receivers[i].task].tid)
			rs->receivers[kept++] = rs->receivers[i];
	rs->receiver_cnt = kept;
}
