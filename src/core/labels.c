/* SPDX-License-Identifier: Apache-2.0 */
#include "labels.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fmt.h"
#include "go_task.h"
#include "snap_text.h"

void labels_init(struct labels *n, const struct engine *e)
{
	memset(n, 0, sizeof(*n));
	n->e = e;
	strpool_init(&n->pool);
}

void labels_done(struct labels *n)
{
	strpool_done(&n->pool);
	map_done(&n->mem, &n->sites);
	map_done(&n->mem, &n->resources);
	map_done(&n->mem, &n->comms);
	map_done(&n->mem, &n->tasks);
	map_done(&n->mem, &n->kinds);
	map_done(&n->mem, &n->stack_idx);
	map_done(&n->mem, &n->mapping_idx);
	vec_done(&n->mem, &n->mappings);
	vec_done(&n->mem, &n->stacks);
	vec_done(&n->mem, &n->frames);
}

int labels_err(const struct labels *n) { return n->err ? n->err : n->pool.err; }

cc_str labels_keep(struct labels *n, struct map *m, uint64_t key, cc_str name)
{
	if (map_put(&n->mem, m, key, name + 1))
		n->err = -ENOMEM;
	return name;
}

/* ---- tasks ---- */

/* tids are used again: the start time tells whose it is. */
static uint64_t task_key(const struct labels *n, uint32_t tid, cc_ns at, struct engine_task *ret)
{
	if (!engine_task(n->e, tid, at, ret)) {
		*ret = (struct engine_task){ .tid = tid };
		return map_mix2(tid, 0);
	}
	return map_mix2(map_mix2(tid, ret->start), ret->born);
}

/* "http.(*conn).serve" of "net/http.(*conn).serve+0x0". */
static cc_str function_name(struct labels *n, const struct engine_task *t)
{
	struct engine_frame f = { 0 };
	const char *s, *plus;

	if (!t->start_pc || !engine_frame(n->e, t->tgid, ENGINE_GEN_NOW, t->start_pc, &f) ||
	    !f.text_len)
		return strpool_add(&n->pool, "goroutine", strlen("goroutine"));
	s = f.text;
	plus = memchr(s, '+', f.text_len);
	if (plus)
		f.text_len = (size_t)(plus - s);
	for (size_t i = f.text_len; i > 0; i--) {
		if (s[i - 1] == '/') {
			s += i;
			f.text_len -= i;
			break;
		}
	}
	return strpool_add(&n->pool, s, f.text_len);
}

static cc_str find_comm(struct labels *n, const struct engine_task *t)
{
	if (t->goid)
		return function_name(n, t);
	return t->comm ? strpool_add(&n->pool, t->comm, strnlen(t->comm, CC_COMM_LEN)) : 0;
}

static cc_str comm_of(struct labels *n, uint32_t tid, cc_ns at)
{
	struct engine_task t;
	uint64_t key = tid ? task_key(n, tid, at, &t) : 0;
	uint32_t kept = tid ? map_get(&n->comms, key) : 1;

	if (kept)
		return kept - 1;
	return labels_keep(n, &n->comms, key, find_comm(n, &t));
}

struct snap_task labels_task(struct labels *n, uint32_t tid, uint32_t tgid, cc_ns at)
{
	struct snap_task s = { .tid = tid, .tgid = tgid, .comm = comm_of(n, tid, at) };
	struct engine_task t;

	if (tid_is_go(tid) && engine_task(n->e, tid, at, &t)) {
		s.goid = t.goid;
		s.tid = t.last_thread;
	}
	return s;
}

cc_str labels_task_label(struct labels *n, uint32_t tid, cc_ns at)
{
	struct engine_task t;
	uint64_t key = tid ? task_key(n, tid, at, &t) : 0;
	uint32_t kept = tid ? map_get(&n->tasks, key) : 1;

	if (kept)
		return kept - 1;
	cc_str comm = comm_of(n, tid, at);

	if (t.goid)
		return labels_keep(n, &n->tasks, key,
				   strpool_addf(&n->pool, "%.60s/g%llu",
						strpool_str(&n->pool, comm),
						(unsigned long long)t.goid));
	return labels_keep(
		n, &n->tasks, key,
		comm ? strpool_addf(&n->pool, "%.60s/%u", strpool_str(&n->pool, comm), tid)
		     : strpool_addf(&n->pool, "tid %u", tid));
}

cc_str labels_waker(struct labels *n, const struct cc_piece *p)
{
	bool task = p->waker_kind == CC_WAKER_TASK || p->waker_kind == CC_WAKER_KTHREAD;

	if (task && p->waker_tid)
		return labels_task_label(n, p->waker_tid, p->end);
	const char *kind = snap_waker_name(p->waker_kind);

	return strpool_add(&n->pool, kind, strlen(kind));
}

cc_str labels_holder(struct labels *n, const struct cc_piece *p)
{
	return labels_task_label(n, p->holder_tid, p->end);
}

/* ---- requests ---- */

cc_str labels_reqid(struct labels *n, struct cc_reqid id)
{
	char text[FMT_LEN];
	size_t len = fmt_reqid(text, sizeof(text), id);

	return strpool_add(&n->pool, text, len);
}

cc_str labels_kind(struct labels *n, struct cc_reqid id)
{
	const struct cc_request *r = engine_request(n->e, id);
	struct engine_conn conn = { 0 };
	cc_str comm;

	if (r)
		conn = (struct engine_conn){ r->rec.local_port, r->tid };
	else if (id.kind != CC_REQID_SOCK || !engine_conn(n->e, id.id, &conn) || !conn.tid)
		return strpool_addf(&n->pool, "another request");
	comm = comm_of(n, conn.tid, r ? r->end : 0);
	if (!comm && r)
		comm = strpool_add(&n->pool, r->rec.comm, sizeof(r->rec.comm));
	uint64_t key = (uint64_t)comm << 16 | conn.local_port;
	uint32_t kept = map_get(&n->kinds, key);
	const char *name = comm ? strpool_str(&n->pool, comm) : "request";

	if (kept)
		return kept - 1;
	return labels_keep(n, &n->kinds, key,
			   conn.local_port
				   ? strpool_addf(&n->pool, "%.60s:%u", name, conn.local_port)
				   : strpool_addf(&n->pool, "%.60s", name));
}

/* ---- for aggregate.h ---- */

static cc_str agg_site(void *ctx, const struct cc_piece *p)
{
	return labels_site(ctx, piece_site(p));
}

static cc_str agg_resource(void *ctx, const struct cc_piece *p)
{
	return labels_resource(ctx, p->resource);
}

static cc_str agg_waker(void *ctx, const struct cc_piece *p) { return labels_waker(ctx, p); }

static cc_str agg_holder(void *ctx, const struct cc_piece *p) { return labels_holder(ctx, p); }

static cc_str agg_kind(void *ctx, struct cc_reqid id) { return labels_kind(ctx, id); }

static cc_str agg_process(void *ctx, uint32_t tid, uint32_t tgid)
{
	struct labels *n = ctx;
	cc_str comm = comm_of(n, tid, 0);

	return comm ? strpool_addf(&n->pool, "%.60s[%u]", strpool_str(&n->pool, comm), tgid)
		    : strpool_addf(&n->pool, "pid %u", tgid);
}

static cc_str agg_task(void *ctx, const struct cc_piece *p)
{
	return labels_task_label(ctx, p->tid, p->end);
}

static cc_str agg_device(void *ctx, const struct cc_piece *p)
{
	struct labels *n = ctx;
	const char *cls = wait_class_name(p->cls);
	cc_str peer = p->cls == WAIT_UPSTREAM ? labels_resource(n, p->resource) : 0;

	return peer ? strpool_addf(&n->pool, "%s %.60s", cls, strpool_str(&n->pool, peer))
		    : strpool_add(&n->pool, cls, strlen(cls));
}

struct agg_names labels_for_aggregate(struct labels *n, struct path_buf *path)
{
	return (struct agg_names){
		.ctx = n,
		.path = path,
		.site = agg_site,
		.resource = agg_resource,
		.waker = agg_waker,
		.holder = agg_holder,
		.kind = agg_kind,
		.process = agg_process,
		.task = agg_task,
		.device = agg_device,
	};
}
