/* SPDX-License-Identifier: Apache-2.0 */
/* Source: https://opentelemetry.io/docs/specs/otlp/ and trace.proto of opentelemetry-proto. */
#include "otlp.h"

#include <errno.h>

#include "fmt.h"
#include "otlp_parts.h"
#include "snap_text.h"

#define LINE_SPANS 1000 /* in one message: below the size that collectors refuse */
#define DEPTH_MAX 256   /* the walk goes no deeper */

enum { KIND_INTERNAL = 1, KIND_SERVER = 2 };

struct writer {
	const struct snapshot *s;
	struct json j;
	uint32_t span_cnt; /* in this line; 0: none is begun */
	uint32_t tgid;     /* of the resource that is begun */
};

static void end_resource(struct writer *w)
{
	json_close(&w->j, ']');
	json_close(&w->j, '}');
	json_close(&w->j, ']');
	json_close(&w->j, '}');
}

static void end_line(struct writer *w)
{
	if (!w->span_cnt)
		return;
	end_resource(w);
	json_close(&w->j, ']');
	json_close(&w->j, '}');
	fputc('\n', w->j.out);
	w->j.more = false;
	w->span_cnt = 0;
}

/* The place for spans of a request of process @tgid: one line has several processes if it must. */
static void begin_request(struct writer *w, uint32_t tgid)
{
	if (w->span_cnt >= LINE_SPANS)
		end_line(w);
	if (w->span_cnt && w->tgid == tgid)
		return;
	if (w->span_cnt) {
		end_resource(w);
	} else {
		json_open(&w->j, NULL, '{');
		json_open(&w->j, "resourceSpans", '[');
	}
	w->tgid = tgid;
	json_open(&w->j, NULL, '{');
	otlp_put_resource(&w->j, w->s, tgid);
	json_open(&w->j, "scopeSpans", '[');
	json_open(&w->j, NULL, '{');
	otlp_put_scope(&w->j);
	json_open(&w->j, "spans", '[');
}

struct span {
	uint64_t id, parent; /* parent 0: none */
	const char *name;
	int kind;
	cc_ns start, end;
};

static void begin_span(struct writer *w, struct otlp_trace_id trace, const struct span *x)
{
	uint64_t wall = (uint64_t)w->s->realtime_off_ns;

	w->span_cnt++;
	json_open(&w->j, NULL, '{');
	otlp_put_trace(&w->j, trace);
	otlp_put_span(&w->j, "spanId", x->id);
	if (x->parent)
		otlp_put_span(&w->j, "parentSpanId", x->parent);
	json_str(&w->j, "name", x->name);
	json_u64(&w->j, "kind", (uint64_t)x->kind);
	otlp_put_u64(&w->j, "startTimeUnixNano", x->start + wall);
	otlp_put_u64(&w->j, "endTimeUnixNano", x->end + wall);
	json_open(&w->j, "attributes", '[');
}

static void end_span(struct writer *w)
{
	json_close(&w->j, ']');
	json_close(&w->j, '}');
}

static void attr_task(struct writer *w, const char *key, const struct snap_task *t)
{
	if (t->tid || t->goid)
		otlp_attr_str(&w->j, key, snap_task_text(w->s, t).s);
}

static void put_piece(struct writer *w, struct otlp_trace_id trace, const struct snap_piece *p,
		      uint64_t id, uint64_t parent)
{
	const struct snapshot *s = w->s;
	const char *site = snapshot_str(s, p->site);
	char name[256];

	fmt_text(name, sizeof(name), *site ? "%s %.200s" : "%s", wait_class_name(p->p.cls), site);
	begin_span(w, trace,
		   &(struct span){ id, parent, name, KIND_INTERNAL, p->p.start, p->p.end });
	otlp_attr_str(&w->j, "criticast.class", wait_class_json(p->p.cls));
	otlp_attr_str(&w->j, "criticast.site", site);
	otlp_attr_str(&w->j, "criticast.resource", snapshot_str(s, p->resource));
	if (*snap_waker_name(p->p.waker_kind))
		otlp_attr_str(&w->j, "criticast.waker", snap_waker_text(s, p).s);
	otlp_attr_str(&w->j, "criticast.waker_kind", snap_waker_name(p->p.waker_kind));
	otlp_attr_str(&w->j, "criticast.waker_site", snapshot_str(s, p->waker_site));
	attr_task(w, "criticast.holder", &p->holder);
	attr_task(w, "criticast.occupant", &p->occupant);
	otlp_attr_str(&w->j, "criticast.for_request", snapshot_str(s, p->for_request));
	otlp_attr_str(&w->j, "criticast.by_request", snapshot_str(s, p->by_request));
	otlp_attr_int(&w->j, "criticast.confidence", p->p.confidence);
	otlp_attr_int(&w->j, "thread.id", p->task.tid);
	otlp_attr_str(&w->j, "thread.name", snapshot_str(s, p->task.comm));
	end_span(w);
}

static void put_request(struct writer *w, const struct snap_request *r)
{
	struct otlp_trace_id trace = otlp_trace_of(w->s, r);
	uint64_t around[DEPTH_MAX + 1] = { otlp_span_of(trace, 0) };

	begin_request(w, r->task.tgid);
	begin_span(w, trace,
		   &(struct span){ around[0], 0, snapshot_str(w->s, r->id_text), KIND_SERVER,
				   r->start, r->end });
	otlp_attr_str(&w->j, "criticast.request", snapshot_str(w->s, r->id_text));
	otlp_attr_str(&w->j, "criticast.verdict", snapshot_str(w->s, r->verdict));
	otlp_attr_str(&w->j, "criticast.state", snap_state_name(r->state));
	otlp_attr_str(&w->j, "criticast.class", wait_class_json(r->dominant.cls));
	otlp_attr_str(&w->j, "criticast.root_class", wait_class_json(r->root.cls));
	otlp_attr_int(&w->j, "criticast.confidence", r->confidence);
	otlp_attr_str(&w->j, "network.peer.address", snapshot_str(w->s, r->peer));
	if (r->rec.local_port)
		otlp_attr_int(&w->j, "server.port", r->rec.local_port);
	end_span(w);
	for (uint32_t i = 0; i < r->piece_cnt; i++) {
		const struct snap_piece *p = &w->s->pieces[r->first_piece + i];
		uint32_t depth = CC_MIN(p->p.depth, DEPTH_MAX - 1u);

		around[depth + 1] = otlp_span_of(trace, i + 1);
		put_piece(w, trace, p, around[depth + 1], around[depth]);
	}
}

int otlp_write(const struct snapshot *s, FILE *out)
{
	struct writer w = { .s = s, .j = { .out = out } };

	for (uint32_t i = 0; i < s->request_cnt; i++)
		put_request(&w, &s->requests[i]);
	end_line(&w);
	return ferror(out) ? -EIO : 0;
}
