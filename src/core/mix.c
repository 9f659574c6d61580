/* SPDX-License-Identifier: Apache-2.0 */
/* What the time of a task went to, by group. A busy thread has a million waits in a window: they
 * are gone through once, when they are new, and kept as sums over a few hundred of them. */
#include <errno.h>
#include <string.h>

#include "engine_priv.h"

#define CELL_LEAST 256u /* episodes: fewer are gone through each time */
#define CELL_MOST 1024u

_Static_assert(sizeof(WAIT_GROUPS) == 10, "nine groups; running is the first, queued the second");

/* [a, b) of a goroutine's time that was no wait: its threads' time, else the Go run queue. */
static void go_mix(const struct engine *e, const struct task *t, cc_ns a, cc_ns b, cc_ns mix[9])
{
	const struct go_state *g = task_go(&e->tasks, t);

	for (cc_ns at = b, from; at > a; at = from) {
		uint32_t i = vec_lower_bound(&g->ons, from, at);
		cc_ns end = i ? go_on_end(g, i - 1) : 0, part[9];

		if (!i || end < at) {
			from = CC_MAX(a, end);
			mix[strchr(WAIT_GROUPS, i < g->ons.cnt ? 'R' : '?') - WAIT_GROUPS] +=
				at - from;
			continue;
		}
		from = CC_MAX(a, g->ons.p[i - 1].from);
		engine_task_mix(e, e->tasks.v.p[g->ons.p[i - 1].other].tid, from, at, part);
		for (int j = 0; j < 9; j++)
			mix[j] += part[j];
	}
}

struct between { /* two operations of a thread on sockets */
	cc_ns since, until;
	bool nothing; /* to do: it answered last, or had none */
};

/* By the operations alone: to look each request up takes as long as all else. */
static struct between between_at(const struct task *t, cc_ns at)
{
	uint32_t i = task_touch_from(t, at + 1);
	const struct sock_touch *last = i ? &t->touches.p[i - 1] : NULL;

	return (struct between){
		.since = last ? last->t : 0,
		.until = i < t->touches.cnt ? t->touches.p[i].t : CC_NEVER,
		.nothing = !last || (touch_is_server(last) && last->op == CC_OP_SEND),
	};
}

/* @b: what was found for a time near @at; all 0: nothing was. */
static bool has_nothing(const struct task *t, cc_ns at, struct between *b)
{
	if (at < b->since || at >= b->until)
		*b = between_at(t, at);
	return b->nothing;
}

/* To a request it is no reason that a thread had nothing to do, to the thread it is sleep: in an
 * event loop, or at a condition variable when it works for no request. A goroutine's say which. */
static char letter_of(const struct task *t, const struct episode *ep, enum wait_class cls,
		      struct between *b)
{
	if (cls == WAIT_EPOLL || (cls == WAIT_COND && !ep_is_go(ep) && has_nothing(t, ep->out, b)))
		return 'S';
	return wait_class_letter(cls);
}

static unsigned int number_of(char letter)
{
	return (unsigned int)(strchr(WAIT_GROUPS, letter) - WAIT_GROUPS);
}

static unsigned int group_of(const struct engine *e, const struct task *t,
			     const struct tl_piece *tp)
{
	struct between b = { 0 };
	char letter = '?';

	if (tp->kind == TL_RUN)
		letter = 'C';
	else if (tp->kind == TL_RUNQ)
		letter = 'R';
	else if (tp->kind == TL_BLOCKED)
		letter = letter_of(t, tp->ep, engine_classify(e, t, tp->ep).cls, &b);
	return number_of(letter);
}

#define WAITS_KNOWN 8u

struct known_wait { /* of a task's waits that nothing is told beside: alike, they are one class */
	uint32_t key;
	int16_t syscall;
	uint8_t kind;
	uint8_t cls; /* 1 + its number; 0: free */
};

struct known { /* of one task */
	struct known_wait waits[WAITS_KNOWN];
	struct between between;
};

/* group_of() the wait @ep of thread @t, for waits that are met one after the other. */
static unsigned int group_again(const struct engine *e, const struct task *t,
				const struct episode *ep, struct known *known)
{
	struct known_wait *k = &known->waits[(ep->key ^ (uint16_t)ep->syscall) % WAITS_KNOWN];
	enum wait_class cls;

	if (!ep->side && k->cls && k->key == ep->key && k->syscall == ep->syscall &&
	    k->kind == ep_kind(ep))
		return number_of(letter_of(t, ep, k->cls - 1u, &known->between));
	cls = engine_classify(e, t, ep).cls;
	if (!ep->side)
		*k = (struct known_wait){ ep->key, ep->syscall, (uint8_t)ep_kind(ep),
					  (uint8_t)(cls + 1) };
	return number_of(letter_of(t, ep, cls, &known->between));
}

static void mix_directly(const struct engine *e, const struct task *t, cc_ns lo, cc_ns hi,
			 cc_ns mix[9])
{
	for (cc_ns at = hi, a; at > lo; at = a) {
		struct tl_piece tp;

		task_piece(t, &e->tasks, at, false, &tp);
		a = CC_MAX(tp.start, lo);
		if (tp.kind == TL_RUN && task_is_go(t))
			go_mix(e, t, a, at, mix);
		else if (tp.kind != TL_NODATA)
			mix[group_of(e, t, &tp)] += at - a;
	}
}

/* Of a cell that [lo, hi) cuts, the part by time. */
static void mix_of_cell(const struct mix_cell *c, cc_ns lo, cc_ns hi, cc_ns mix[9])
{
	cc_ns from = CC_MAX(c->from, lo), to = CC_MIN(c->to, hi);
	bool whole = from == c->from && to == c->to;
	double part = (double)(to - from) / (double)(c->to - c->from);

	for (int i = 0; i < 9; i++)
		mix[i] += whole ? c->mix[i] : (cc_ns)((double)c->mix[i] * part);
}

void engine_task_mix(const struct engine *e, uint32_t tid, cc_ns lo, cc_ns hi, cc_ns mix[9])
{
	const struct task *t = tasks_find(&e->tasks, tid, hi);
	uint32_t i;

	memset(mix, 0, 9 * sizeof(mix[0]));
	if (!t)
		return;
	i = vec_lower_bound(&t->cells, to, lo + 1);
	if (i == t->cells.cnt || t->cells.p[i].from >= hi) {
		mix_directly(e, t, lo, hi, mix);
		return;
	}
	mix_directly(e, t, lo, CC_MAX(lo, t->cells.p[i].from), mix);
	for (; i < t->cells.cnt && t->cells.p[i].from < hi; i++)
		mix_of_cell(&t->cells.p[i], lo, hi, mix);
	mix_directly(e, t, CC_MIN(hi, t->cells.p[i - 1].to), hi, mix);
}

#define SIDES_AHEAD 16 /* episodes: what is told beside them is far away in memory */

/* As mix_directly() over the @n episodes from @first on, and the time since @at before each: one
 * after the other, not each looked up. */
static void mix_of_episodes(const struct engine *e, const struct task *t, cc_ns at, uint32_t first,
			    uint32_t n, cc_ns mix[9])
{
	struct known known = { 0 };

	for (uint32_t i = first; i < first + n; at = t->eps.p[i].in, i++) {
		const struct episode *ep = &t->eps.p[i];
		bool follows = i > 0 && ep->seq == ep[-1].seq + 1 && at == ep[-1].in;
		cc_ns end = ep_kind(ep) == EP_RUNNABLE ? ep->out : ep_blocked_end(ep);

		if (i + SIDES_AHEAD < first + n && ep[SIDES_AHEAD].side)
			side_prefetch(&e->tasks.sides.p[ep[SIDES_AHEAD].side]);
		if (follows && !ep_lost(&e->tasks, ep))
			mix[0] += ep->out - at;
		else
			mix_directly(e, t, at, ep->out, mix);
		if (ep_kind(ep) == EP_UNSEEN) {
			mix_directly(e, t, ep->out, ep->in, mix);
			continue;
		}
		if (end > ep->out)
			mix[group_again(e, t, ep, &known)] += end - ep->out;
		mix[1] += ep->in - end;
	}
}

/* Sums up the episodes of task @ti up to @to that are not in a cell yet, if they are many. */
static int add_cells(struct engine *e, uint32_t ti, cc_ns to)
{
	struct task *t = &e->tasks.v.p[ti];
	cc_ns from = t->cells.cnt ? t->cells.p[t->cells.cnt - 1].to : 0;
	uint32_t first, cnt;

	if (t->eps.cnt < CELL_LEAST || task_is_go(t) ||
	    t->eps.p[t->eps.cnt - CELL_LEAST].out < from)
		return 0;
	first = task_ep_from(t, from);
	cnt = task_ep_until(t, to);
	while (cnt >= first + CELL_LEAST) {
		uint32_t n = CC_MIN(cnt - first, CELL_MOST);
		struct mix_cell c = { .from = from ? from : t->eps.p[first].out,
				      .to = t->eps.p[first + n - 1].in };

		if (c.from >= c.to)
			return 0; /* times that cannot be */
		mix_of_episodes(e, t, c.from, first, n, c.mix);
		if (vec_reserve(&e->mem, &t->cells, t->cells.cnt + 1))
			return -ENOMEM;
		t->cells.p[t->cells.cnt++] = c;
		from = c.to;
		first += n;
	}
	return 0;
}

int mix_add_cells(struct engine *e, cc_ns to)
{
	int err = 0;

	for (uint32_t i = 0; i < e->tasks.v.cnt && !err; i++)
		err = add_cells(e, i, to);
	return err;
}
