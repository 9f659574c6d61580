/* SPDX-License-Identifier: Apache-2.0 */
/* Source: https://github.com/google/perfetto/tree/main/protos/perfetto/trace, track_event and
 * trace_packet.proto. */
#include "perfetto.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "fmt.h"
#include "map.h"
#include "proto_write.h"
#include "snap_text.h"

enum { TRACE_PACKET = 1 };
enum {
	PACKET_TIMESTAMP = 8,
	PACKET_SEQUENCE = 10,
	PACKET_EVENT = 11,
	PACKET_SEQUENCE_FLAGS = 13,
	PACKET_TRACK = 60
};
enum { EVENT_TYPE = 9, EVENT_TRACK = 11, EVENT_CATEGORY = 22, EVENT_NAME = 23 };
enum { EVENT_ANNOTATION = 4, EVENT_FLOW = 47, EVENT_FLOW_END = 48 };
enum { TYPE_BEGIN = 1, TYPE_END = 2, TYPE_INSTANT = 3 };
enum { NOTE_INT = 4, NOTE_TEXT = 6, NOTE_NAME = 10 };
enum { TRACK_UUID = 1, TRACK_NAME = 2, TRACK_PROCESS = 3, TRACK_THREAD = 4, TRACK_PARENT = 5 };
enum { PROCESS_PID = 1, PROCESS_NAME = 6 };
enum { THREAD_PID = 1, THREAD_TID = 2, THREAD_NAME = 5 };
enum { FLAG_CLEARED = 1 };

#define SEQUENCE 1
#define SLICE_DEPTH 256 /* the walk goes no deeper */

/* Numbers of tracks: of all requests, of a request, of a process, of a task. */
enum { UUID_REQUESTS = 1 };
static uint64_t request_uuid(uint32_t i) { return 1ull << 33 | i; }
static uint64_t process_uuid(uint32_t tgid) { return 1ull << 34 | tgid; }
static uint64_t line_uuid(uint32_t i) { return 1ull << 35 | i; }

struct perfetto {
	const struct snapshot *s;
	FILE *out;
	struct mem mem;
	struct map lines; /* task_key() -> 1 + index of the first line; others follow by next */
	VEC(uint32_t) next;
	struct map processes; /* tgids that have a track */
	struct msg packet, event, note, trace;
};

/* ---- packets ---- */

static void end_packet(struct perfetto *p)
{
	put_int(&p->packet, PACKET_SEQUENCE, SEQUENCE);
	put_msg(&p->trace, TRACE_PACKET, &p->packet);
	fwrite(p->trace.b.p, 1, p->trace.b.cnt, p->out);
	p->trace.b.cnt = 0;
}

static void note_text(struct perfetto *p, const char *name, const char *text)
{
	if (!*text)
		return;
	put_text(&p->note, NOTE_NAME, name);
	put_text(&p->note, NOTE_TEXT, text);
	put_msg(&p->event, EVENT_ANNOTATION, &p->note);
}

static void note_int(struct perfetto *p, const char *name, uint64_t v)
{
	put_text(&p->note, NOTE_NAME, name);
	put_int(&p->note, NOTE_INT, v);
	put_msg(&p->event, EVENT_ANNOTATION, &p->note);
}

static void begin_event(struct perfetto *p, unsigned int type, uint64_t track)
{
	put_int(&p->event, EVENT_TYPE, type);
	put_int(&p->event, EVENT_TRACK, track);
}

static void end_event(struct perfetto *p, cc_ns at)
{
	put_int(&p->packet, PACKET_TIMESTAMP, at);
	put_msg(&p->packet, PACKET_EVENT, &p->event);
	end_packet(p);
}

static void end_slice(struct perfetto *p, uint64_t track, cc_ns at)
{
	begin_event(p, TYPE_END, track);
	end_event(p, at);
}

/* ---- tracks ---- */

static void begin_track(struct perfetto *p, uint64_t uuid, uint64_t parent)
{
	put_int(&p->event, TRACK_UUID, uuid);
	if (parent)
		put_int(&p->event, TRACK_PARENT, parent);
}

static void end_track(struct perfetto *p)
{
	put_msg(&p->packet, PACKET_TRACK, &p->event);
	end_packet(p);
}

static const char *process_name(const struct snapshot *s, uint32_t tgid)
{
	for (uint32_t i = 0; i < s->target_cnt; i++) {
		if (s->targets[i].task.tgid == tgid)
			return snapshot_str(s, s->targets[i].task.comm);
	}
	return "";
}

static int put_process(struct perfetto *p, uint32_t tgid)
{
	if (map_get(&p->processes, tgid))
		return 0;
	put_int(&p->note, PROCESS_PID, tgid);
	put_text(&p->note, PROCESS_NAME, process_name(p->s, tgid));
	begin_track(p, process_uuid(tgid), 0);
	put_msg(&p->event, TRACK_PROCESS, &p->note);
	end_track(p);
	return map_put(&p->mem, &p->processes, tgid, 1);
}

/* A goroutine has no tid of its own: a track with a name within its process. */
static int put_line_track(struct perfetto *p, uint32_t i)
{
	const struct snap_task *t = &p->s->lines[i].task;
	struct snap_text text = snap_task_text(p->s, t);
	int err = put_process(p, t->tgid);

	begin_track(p, line_uuid(i), process_uuid(t->tgid));
	if (t->goid) {
		put_text(&p->event, TRACK_NAME, text.s);
	} else {
		put_int(&p->note, THREAD_PID, t->tgid);
		put_int(&p->note, THREAD_TID, t->tid);
		put_text(&p->note, THREAD_NAME, snapshot_str(p->s, t->comm));
		put_msg(&p->event, TRACK_THREAD, &p->note);
	}
	end_track(p);
	return err;
}

/* ---- requests ---- */

static void begin_piece(struct perfetto *p, uint64_t track, const struct snap_piece *x)
{
	const struct snapshot *s = p->s;
	const char *site = snapshot_str(s, x->site);
	char name[256];

	fmt_text(name, sizeof(name), *site ? "%s %.200s" : "%s", wait_class_name(x->p.cls), site);
	begin_event(p, TYPE_BEGIN, track);
	put_text(&p->event, EVENT_NAME, name);
	put_text(&p->event, EVENT_CATEGORY, wait_class_json(x->p.cls));
	note_text(p, "task", snap_task_text(s, &x->task).s);
	note_text(p, "resource", snapshot_str(s, x->resource));
	if (*snap_waker_name(x->p.waker_kind))
		note_text(p, "waker", snap_waker_text(s, x).s);
	note_text(p, "waker_site", snapshot_str(s, x->waker_site));
	if (x->holder.tid || x->holder.goid)
		note_text(p, "holder", snap_task_text(s, &x->holder).s);
	if (x->occupant.tid)
		note_text(p, "occupant", snap_task_text(s, &x->occupant).s);
	note_text(p, "for_request", snapshot_str(s, x->for_request));
	note_text(p, "by_request", snapshot_str(s, x->by_request));
	note_int(p, "confidence", x->p.confidence);
	end_event(p, x->p.start);
}

static void put_request(struct perfetto *p, uint32_t i)
{
	const struct snapshot *s = p->s;
	const struct snap_request *r = &s->requests[i];
	const struct snap_piece *all = &s->pieces[r->first_piece];
	cc_ns open[SLICE_DEPTH];
	uint32_t depth = 0;

	begin_event(p, TYPE_BEGIN, request_uuid(i));
	put_text(&p->event, EVENT_NAME, snapshot_str(s, r->id_text));
	put_text(&p->event, EVENT_CATEGORY, "request");
	note_text(p, "verdict", snapshot_str(s, r->verdict));
	note_text(p, "state", snap_state_name(r->state));
	note_text(p, "peer", snapshot_str(s, r->peer));
	note_int(p, "local_port", r->rec.local_port);
	note_int(p, "latency_ns", r->latency_ns);
	note_int(p, "confidence", r->confidence);
	end_event(p, r->start);
	for (uint32_t k = 0; k < r->piece_cnt; k++) {
		while (depth > all[k].p.depth)
			end_slice(p, request_uuid(i), open[--depth]);
		if (depth == ARRAY_SIZE(open))
			continue;
		begin_piece(p, request_uuid(i), &all[k]);
		open[depth++] = all[k].p.end;
	}
	while (depth)
		end_slice(p, request_uuid(i), open[--depth]);
	end_slice(p, request_uuid(i), r->end);
}

static void put_requests(struct perfetto *p)
{
	begin_track(p, UUID_REQUESTS, 0);
	put_text(&p->event, TRACK_NAME, "requests");
	end_track(p);
	for (uint32_t i = 0; i < p->s->request_cnt; i++) {
		begin_track(p, request_uuid(i), UUID_REQUESTS);
		put_text(&p->event, TRACK_NAME, snapshot_str(p->s, p->s->requests[i].id_text));
		end_track(p);
		put_request(p, i);
	}
}

/* ---- threads ---- */

static uint64_t task_key(const struct snap_task *t)
{
	return t->goid ? map_mix2(t->tgid, t->goid) : t->tid;
}

static int index_lines(struct perfetto *p)
{
	const struct snapshot *s = p->s;
	int err = vec_reserve(&p->mem, &p->next, (size_t)s->line_cnt + 1);

	for (uint32_t i = 0; i < s->line_cnt && !err; i++) {
		uint64_t key = task_key(&s->lines[i].task);

		p->next.p[i] = map_get(&p->lines, key);
		err = map_put(&p->mem, &p->lines, key, i + 1);
	}
	return err;
}

/* It was on the CPU at @at, or up to then: only there can it give a wake. */
static bool ran_at(const struct snapshot *s, const struct snap_line *line, cc_ns at)
{
	const struct snap_state *x = s->states + line->first_state;
	uint32_t lo = 0, hi = line->state_cnt;

	while (lo < hi) { /* the first that ends at @at or later */
		uint32_t mid = lo + (hi - lo) / 2;

		if (x[mid].end < at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < line->state_cnt && x[lo].start <= at && x[lo].cls == WAIT_CPU;
}

/* 1 + index of the line that gave the wake at the end of @x; 0: none that is shown did. */
static uint32_t waker_line(const struct perfetto *p, const struct snap_state *x)
{
	uint32_t i = x->waker.tid || x->waker.goid ? map_get(&p->lines, task_key(&x->waker)) : 0;

	while (i && !ran_at(p->s, &p->s->lines[i - 1], x->end))
		i = p->next.p[i - 1];
	return i;
}

/* Does the @k-th state of @line end by a wake that gets an arrow? It leads to the state after. */
static uint32_t arrow_from(const struct perfetto *p, const struct snap_line *line, uint32_t k)
{
	const struct snap_state *x = &p->s->states[line->first_state + k];

	if (k + 1 >= line->state_cnt || x[1].start != x->end)
		return 0;
	return waker_line(p, x);
}

/* The tails of the arrows, all before their heads: a reader takes the first it meets for the tail.
 */
static void put_wakes(struct perfetto *p)
{
	const struct snapshot *s = p->s;

	for (uint32_t i = 0; i < s->line_cnt; i++) {
		const struct snap_line *line = &s->lines[i];

		for (uint32_t k = 0; k < line->state_cnt; k++) {
			uint32_t from = arrow_from(p, line, k);
			char name[128];

			if (!from)
				continue;
			fmt_text(name, sizeof(name), "wakes %s", snap_task_text(s, &line->task).s);
			begin_event(p, TYPE_INSTANT, line_uuid(from - 1));
			put_text(&p->event, EVENT_NAME, name);
			put_text(&p->event, EVENT_CATEGORY, "wake");
			put_fixed64(&p->event, EVENT_FLOW, (uint64_t)line->first_state + k + 1);
			end_event(p, s->states[line->first_state + k].end);
		}
	}
}

static void put_states(struct perfetto *p, uint32_t i)
{
	const struct snapshot *s = p->s;
	const struct snap_line *line = &s->lines[i];

	for (uint32_t k = 0; k < line->state_cnt; k++) {
		const struct snap_state *x = &s->states[line->first_state + k];

		begin_event(p, TYPE_BEGIN, line_uuid(i));
		put_text(&p->event, EVENT_NAME,
			 x->cls == WAIT_UNKNOWN ? "events lost" : wait_class_name(x->cls));
		put_text(&p->event, EVENT_CATEGORY, "state");
		if (x->waker_kind == CC_WAKER_TASK || x->waker_kind == CC_WAKER_KTHREAD)
			note_text(p, "waker", snap_task_text(s, &x->waker).s);
		else
			note_text(p, "waker", snap_waker_name(x->waker_kind));
		if (k && arrow_from(p, line, k - 1))
			put_fixed64(&p->event, EVENT_FLOW_END, (uint64_t)line->first_state + k);
		end_event(p, x->start);
		end_slice(p, line_uuid(i), x->end);
	}
}

static int put_lines(struct perfetto *p)
{
	int err = index_lines(p);

	for (uint32_t i = 0; i < p->s->line_cnt && !err; i++)
		err = put_line_track(p, i);
	if (err)
		return err;
	put_wakes(p);
	for (uint32_t i = 0; i < p->s->line_cnt; i++)
		put_states(p, i);
	return 0;
}

int perfetto_write(const struct snapshot *s, FILE *out)
{
	struct perfetto p = { .s = s, .out = out };
	int err;

	put_int(&p.packet, PACKET_SEQUENCE_FLAGS, FLAG_CLEARED);
	end_packet(&p);
	put_requests(&p);
	err = put_lines(&p);
	if (!err)
		err = p.trace.err;
	map_done(&p.mem, &p.lines);
	map_done(&p.mem, &p.processes);
	vec_done(&p.mem, &p.next);
	msg_done(&p.packet);
	msg_done(&p.event);
	msg_done(&p.note);
	msg_done(&p.trace);
	return err ? err : ferror(out) ? -EIO : 0;
}
