/* SPDX-License-Identifier: Apache-2.0 */
#include "verdict.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "confidence.h"
#include "digest.h"
#include "fmt.h"
#include "snap_text.h"

/* A sentence that grows; what does not fit is cut. */
struct out {
	char *buf;
	size_t cap, len;
};

static CC_PRINTF(2, 3) void say(struct out *o, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	int n = vsnprintf(o->buf + o->len, o->cap - o->len, fmt, ap);

	va_end(ap);
	if (n > 0)
		o->len += CC_MIN((size_t)n, o->cap - o->len - 1);
}

static void say_ms(struct out *o, cc_ns ns)
{
	char text[FMT_LEN];

	fmt_ms(text, sizeof(text), ns);
	say(o, "%s", text);
}

static const struct snap_piece *pieces_of(const struct snapshot *s, const struct snap_request *r)
{
	return &s->pieces[r->first_piece];
}

/* Whom the sentence names had only a part of the wait. */
static bool has_others(const struct snap_dominant *d) { return d->culprit_ns < d->ns - d->ns / 10; }

/* A lock that several held one after the other; the sentence names the longest. */
static bool held_in_turn(const struct snap_piece *p, const struct snap_dominant *d)
{
	return wait_class_letter(p->p.cls) == 'L' && p->p.holder_tid && has_others(d);
}

/* Is @x of the time that @p speaks for? */
static bool is_alike(const struct snap_piece *x, const struct snap_piece *p)
{
	return x->p.cls == p->p.cls && x->p.depth == p->p.depth &&
	       (!p->p.depth || x->p.tid == p->p.tid);
}

static void say_part(struct out *o, const struct snap_dominant *d)
{
	if (!has_others(d))
		return;
	say(o, " for ");
	say_ms(o, d->culprit_ns);
	say(o, " of it");
}

static size_t function_len(const char *site) /* without its "+0x41" */
{
	const char *plus = strrchr(site, '+');

	return plus ? (size_t)(plus - site) : strlen(site);
}

static bool same_function(const char *a, const char *b)
{
	return function_len(a) == function_len(b) && !strncmp(a, b, function_len(a));
}

/* Samples come every 10 ms, so that few pieces have one: a function is named when more than half of
 * the time on a CPU was in pieces that were seen in it. By the majority of one pass, proven in a
 * second, as in agg_waits.c. "": none was. */
static const char *cpu_site(const struct snapshot *s, const struct snap_request *r,
			    const struct snap_piece *p)
{
	const struct snap_piece *v = pieces_of(s, r);
	const char *name = "";
	cc_ns all = 0, weight = 0, agree = 0;

	for (uint32_t i = 0; i < r->piece_cnt; i++) {
		cc_ns ns = v[i].p.end - v[i].p.start;
		const char *site = snapshot_str(s, v[i].site);

		if (!is_alike(&v[i], p))
			continue;
		all += ns;
		if (!*site)
			continue;
		if (*name && same_function(name, site)) {
			weight += ns;
		} else if (weight < ns) {
			name = site;
			weight = ns - weight;
		} else {
			weight -= ns;
		}
	}
	for (uint32_t i = 0; i < r->piece_cnt && *name; i++) {
		if (is_alike(&v[i], p) && same_function(name, snapshot_str(s, v[i].site)))
			agree += v[i].p.end - v[i].p.start;
	}
	return agree > all / 2 ? name : "";
}

/* " in site", " on resource" (a peer: " for it"): whichever is known. */
static bool say_place(struct out *o, const struct snapshot *s, const struct snap_request *r,
		      const struct snap_piece *p)
{
	bool cpu = p->p.cls == WAIT_CPU;
	const char *site = cpu ? cpu_site(s, r, p) : snapshot_str(s, p->site);
	const char *resource = snapshot_str(s, p->resource);

	if (*resource)
		say(o, wait_class_letter(p->p.cls) == 'N' ? " for %s" : " on %s", resource);
	if (*site) /* it ran all over a function, but waited in one place */
		say(o, " in %.*s", (int)(cpu ? function_len(site) : strlen(site)), site);
	return *resource || *site;
}

/* A wait for a CPU comes in many pieces, and whoever is named had the CPU in some of them. */
static void say_runq(struct out *o, const struct snapshot *s, const struct snap_request *r,
		     const struct snap_piece *p)
{
	const struct snap_piece *v = pieces_of(s, r);
	cc_ns all = 0, had = 0;
	uint32_t cnt = 0;

	if (!p->p.occupant_tid) {
		say(o, ": runnable, no CPU was free for it");
		return;
	}
	for (uint32_t i = 0; i < r->piece_cnt; i++) {
		if (!is_alike(&v[i], p))
			continue;
		all += v[i].p.end - v[i].p.start;
		cnt++;
		if (v[i].p.occupant_tid == p->p.occupant_tid)
			had += v[i].p.occupant_ns;
	}
	struct snap_text who = snap_task_text(s, &p->occupant);
	bool alone = had >= all / 4;

	say(o, alone ? ": behind %s, which had that CPU for " : ": behind several in turn, %s for ",
	    who.s);
	say_ms(o, had);
	if (alone)
		say(o, " of it");
	else if (cnt == 1) /* who had it longest in one is not who had it longest in all */
		say(o, ", the longest");
	if (cnt == 1 && p->p.flags & CC_PC_MIGRATED)
		say(o, ", then moved to another CPU");
}

/* What is waited for is that something happens, not that somebody lets go of it. */
static bool nobody_has(unsigned int cls)
{
	return cls == WAIT_COND || cls == WAIT_CHAN || cls == WAIT_SELECT;
}

static void say_lock(struct out *o, const struct snapshot *s, const struct snap_piece *p,
		     const struct snap_dominant *d)
{
	const char *resource = snapshot_str(s, p->resource), *site = snapshot_str(s, p->site);
	say(o, ": %s", *resource ? resource : *site ? site : "an unknown lock");
	if (held_in_turn(p, d)) {
		say(o, " held by several in turn, %s for ", snap_task_text(s, &p->holder).s);
		say_ms(o, d->culprit_ns);
		say(o, ", the longest");
		return;
	}
	if (p->p.holder_tid)
		say(o, " held by %s", snap_task_text(s, &p->holder).s);
	else if (!nobody_has(p->p.cls))
		say(o, ", holder not known");
	if (!p->p.holder_tid && p->p.waker_tid)
		say(o, ", %s by %s", nobody_has(p->p.cls) ? "ended" : "released",
		    snap_task_text(s, &p->waker).s);
	say_part(o, d);
}

static void say_queue(struct out *o, const struct snapshot *s, const struct snap_piece *p,
		      const struct snap_dominant *d)
{
	const char *by = snapshot_str(s, p->by_request);

	if (p->p.cls == WAIT_HOL)
		say(o, ": its thread served %s%s", *by ? "request " : "another request", by);
	else if (p->p.cls == WAIT_QUEUED)
		say(o, ": all workers were busy%s%s", *by ? ", with request " : "", by);
	else
		say(o, ": %s", wait_class_help(p->p.cls));
	if (*by)
		say_part(o, d);
	if (p->p.cls == WAIT_HOL)
		say(o, " meanwhile");
	if (p->p.flags & CC_PC_IDLE_SIBLING)
		say(o, ", though another worker was idle");
}

static void say_other(struct out *o, const struct snapshot *s, const struct snap_request *r,
		      const struct snap_piece *p)
{
	say(o, ":");
	if (!say_place(o, s, r, p))
		say(o, " %s", wait_class_help(p->p.cls));
	say(o, "%s", snap_net_text(&p->p).s);
	if (p->p.flags & CC_PC_NOT_TRACED && p->p.waker_tid)
		say(o, ", ended by %s (not traced)", snap_task_text(s, &p->waker).s);
	if (p->p.ended == CC_ENDED_TIMEOUT)
		say(o, ", ended by its timeout");
}

static void say_cause(struct out *o, const struct snapshot *s, const struct snap_request *r,
		      const struct snap_piece *p)
{
	const struct snap_dominant *d = &r->dominant;

	switch (wait_class_letter(p->p.cls)) {
	case 'R':
		if (p->p.cls == WAIT_RUNQ)
			say_runq(o, s, r, p);
		else
			say(o, ": %s", wait_class_help(p->p.cls));
		break;
	case 'L':
		say_lock(o, s, p, d);
		break;
	case 'Q':
		say_queue(o, s, p, d);
		break;
	default:
		say_other(o, s, r, p);
	}
	if (p->p.flags & CC_PC_OPEN)
		say(o, ", not over yet");
}

/* What lies beneath the dominant wait, when that is known and another thing. */
static void say_root(struct out *o, const struct snapshot *s, const struct snap_request *r,
		     const struct snap_piece *top)
{
	const char *name = wait_class_name(r->root.cls);
	if (r->root.piece >= r->piece_cnt || wait_class_unexplained(r->root.cls))
		return;
	const struct snap_piece *p = &pieces_of(s, r)[r->root.piece];

	if (p->p.depth == 0)
		return;
	bool same = top->p.holder_tid == p->p.tid;
	bool several = held_in_turn(top, &r->dominant) && has_others(&r->root);
	const char *by = snapshot_str(s, p->by_request);

	if (several)
		say(o, "; those were ");
	else
		say(o, ", %s ", same ? "itself" : snap_task_text(s, &p->task).s);
	say(o, r->root.cls == WAIT_QUEUED ? "busy with other requests " : "in %s ", name);
	if (has_others(&r->root) && !several) {
		say_ms(o, r->root.culprit_ns);
		say(o, " of ");
	}
	say_ms(o, r->root.ns);
	if (r->root.cls == WAIT_QUEUED) {
		say(o, *by ? " ms, longest with %s" : " ms", by);
		return;
	}
	say(o, " ms -> the root cause is %s", name);
	say_place(o, s, r, p);
}

static void say_share(struct out *o, const struct snap_request *r)
{
	say(o, "%s ", wait_class_name(r->dominant.cls));
	say_ms(o, r->dominant.ns);
	say(o, " of ");
	say_ms(o, r->latency_ns);
	say(o, " ms (%.0f%%)", 100 * r->dominant.share);
}

size_t verdict_request(const struct snapshot *s, const struct snap_request *r, char *buf,
		       size_t cap)
{
	struct out o = { buf, cap, 0 };
	const struct snap_piece *p =
		r->dominant.piece < r->piece_cnt ? &pieces_of(s, r)[r->dominant.piece] : NULL;

	buf[0] = '\0';
	if (*request_label(&r->rec))
		say(&o, "%s: ", request_label(&r->rec));
	if (r->state == CC_RQS_IN_FLIGHT)
		say(&o, "still going on: ");
	if (!r->path_ok || (!p && !r->pieces_left_out)) {
		say(&o, "not attributed: no path (its events are not kept, or it was not sampled)");
		return o.len;
	}
	if (wait_class_unexplained(r->dominant.cls)) {
		say(&o, "not attributed: ");
		say_share(&o, r);
		say(&o, ", %s", wait_class_help(r->dominant.cls));
	} else {
		if (r->confidence < CC_CONF_MEDIUM)
			say(&o, "probably ");
		say_share(&o, r);
		if (p)
			say_cause(&o, s, r, p);
		if (p)
			say_root(&o, s, r, p);
	}
	if (r->confidence < CC_CONF_MEDIUM)
		say(&o, "; low confidence (%u)", r->confidence);
	if (r->lost_inside)
		say(&o, "; events were lost meanwhile");
	return o.len;
}

/* ---- the window ---- */

/* What takes most of typical requests' time and is the same in slow ones. */
static const struct snap_slow_typical *as_always(const struct snapshot *s, unsigned int except)
{
	const struct snap_slow_typical *best = NULL;

	for (uint32_t i = 0; i < s->slow_cnt; i++) {
		const struct snap_slow_typical *x = &s->slow[i];
		cc_ns diff = x->slow_ns > x->typical_ns ? x->slow_ns - x->typical_ns
							: x->typical_ns - x->slow_ns;

		if (x->cls == except || !x->typical_ns || diff > x->typical_ns / 5)
			continue;
		if (!best || x->typical_ns > best->typical_ns)
			best = x;
	}
	return best;
}

static void say_slow(struct out *o, const struct snapshot *s, const struct verdict_slow *d)
{
	const char *place = snapshot_str(s, d->resource);

	if (!*place)
		place = snapshot_str(s, d->site);
	if (*place)
		say(o, " on %s", place);
	if (d->holder)
		say(o, ", held by %s", snapshot_str(s, d->holder));
	if (d->root_cls != d->cls && !wait_class_unexplained(d->root_cls))
		say(o, d->holder ? " in %s" : ", beneath it %s", wait_class_name(d->root_cls));
}

static void say_no_contrast(struct out *o, const struct snapshot *s)
{
	const struct snap_slow_typical *most = NULL;

	for (uint32_t i = 0; i < s->slow_cnt; i++) {
		if (!most || s->slow[i].slow_ns > most->slow_ns)
			most = &s->slow[i];
	}
	say(o, "slow requests are like the typical ones");
	if (!most)
		return;
	say(o, ": mostly %s, ", wait_class_name(most->cls));
	say_ms(o, most->slow_ns);
	say(o, " ms each");
}

size_t verdict_window(const struct snapshot *s, const struct verdict_slow *d, char *buf, size_t cap)
{
	struct out o = { buf, cap, 0 };
	const struct snap_slow_typical *top = s->slow_cnt ? &s->slow[0] : NULL;

	buf[0] = '\0';
	if (!s->total_cnt) {
		say(&o, "no finished request in this window");
		if (s->in_flight_cnt)
			say(&o, ", %u in flight", s->in_flight_cnt);
		return o.len;
	}
	/* a tenth of what the typical ones have is noise */
	if (!top || top->slow_ns <= top->typical_ns + top->typical_ns / 10) {
		say_no_contrast(&o, s);
		return o.len;
	}
	say(&o, "slow requests (");
	say_ms(&o, s->p95_ns);
	say(&o, " ms and over): %s +", wait_class_name(top->cls));
	say_ms(&o, top->slow_ns - top->typical_ns);
	say(&o, " ms");
	if (wait_class_unexplained(top->cls))
		say(&o, ", not attributed");
	else if (d && d->cls == top->cls)
		say_slow(&o, s, d);
	const struct snap_slow_typical *same = as_always(s, top->cls);

	if (same)
		say(&o, "; %s as always", wait_class_name(same->cls));
	return o.len;
}
