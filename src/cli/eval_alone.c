/* SPDX-License-Identifier: Apache-2.0 */
/* The models on the log alone: what each would say if it saw just what the lines tell about sockets
 * (handler-entry), births, items and resources, but not their tokens. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "eval.h"

#define KEYS 3 /* of what is remembered: goroutines, items, things that are passed around */
enum key_kind { OF_GOROUTINE, OF_ITEM, OF_RESOURCE };

struct memory { /* key -> token; open addressing */
	struct cell {
		uint64_t key;
		uint32_t token;
		uint8_t kind;
		bool used;
	} * cells;
	size_t cap;
};

static struct cell *cell_of(struct memory *m, enum key_kind kind, uint64_t key)
{
	uint64_t h = (key * KEYS + kind) * 0x9e3779b97f4a7c15ull;

	for (size_t i = (size_t)(h >> 24);; i++) {
		struct cell *c = &m->cells[i & (m->cap - 1)];

		if (!c->used) {
			c->used = true;
			c->kind = (uint8_t)kind;
			c->key = key;
		}
		if (c->kind == kind && c->key == key)
			return c;
	}
}

#define THE_MUTEX UINT64_MAX /* a log names no mutex: there is one */

/* What a goroutine that came to this line works for, by the model; @own: what it did before. */
static uint32_t learn(struct memory *m, const struct eval_fact *f, enum engine_serve mode,
		      uint32_t own)
{
	bool items = mode != ENGINE_SERVE_LINEAGE, naive = mode == ENGINE_SERVE_NAIVE;
	uint32_t from = 0;

	switch ((enum eval_site)f->site) {
	case EVAL_AT_ENTRY:
		return f->token; /* the socket says it */
	case EVAL_AT_SPAWN_WORK:
		/* without its parent's number, that it was born for this is all that is told */
		return f->has_extra ? cell_of(m, OF_GOROUTINE, f->extra)->token : f->token;
	case EVAL_AT_RECV:
		return items && f->has_extra ? cell_of(m, OF_ITEM, f->extra)->token : own;
	case EVAL_AT_ACQUIRE:
		if (mode == ENGINE_SERVE_ITEMS || naive)
			from = cell_of(m, OF_RESOURCE, f->extra)->token;
		return from ? from : own;
	case EVAL_AT_LOCK:
		if (naive)
			from = cell_of(m, OF_RESOURCE, THE_MUTEX)->token;
		return from ? from : own;
	case EVAL_AT_SELECT:
	case EVAL_AT_BROADCAST:
		return naive ? 0 : own;
	default:
		return own;
	}
}

static void remember(struct memory *m, const struct eval_fact *f, uint32_t own)
{
	if (f->site == EVAL_AT_SEND && f->has_extra)
		cell_of(m, OF_ITEM, f->extra)->token = own;
	else if (f->site == EVAL_AT_RELEASE)
		cell_of(m, OF_RESOURCE, f->extra)->token = own;
	else if (f->site == EVAL_AT_UNLOCK)
		cell_of(m, OF_RESOURCE, THE_MUTEX)->token = own;
}

void eval_alone(const struct eval_log *l, enum engine_serve mode, struct eval_claim *claims)
{
	struct memory m = { .cap = 1024 };

	memset(claims, 0, l->cnt * sizeof(*claims));
	while (m.cap < 4 * KEYS * (l->cnt + 1))
		m.cap *= 2;
	m.cells = calloc(m.cap, sizeof(*m.cells));
	if (!m.cells)
		return; /* nothing is claimed */
	for (size_t i = 0; i < l->cnt; i++) {
		const struct eval_fact *f = &l->v[i];
		struct cell *own = cell_of(&m, OF_GOROUTINE, f->goid);

		own->token = learn(&m, f, mode, own->token);
		remember(&m, f, own->token);
		claims[i] = (struct eval_claim){
			.token = own->token,
			.confidence = 95,
			.ambiguous = f->site == EVAL_AT_SELECT && mode != ENGINE_SERVE_NAIVE,
			.asked = true,
		};
		if (claims[i].ambiguous)
			claims[i].token = 0;
		if (f->site == EVAL_AT_EXIT || f->site == EVAL_AT_DONE ||
		    f->site == EVAL_AT_SPAWN_DONE)
			own->token = mode == ENGINE_SERVE_NAIVE ? own->token : 0;
	}
	free(m.cells);
}

/* ---- the true path ------------------------------------------------------------------------ */

struct walk {
	const struct eval_log *l;
	const uint32_t *idx;
	size_t cnt, edges;
	struct eval_edge *ret;
};

static const struct eval_fact *at(const struct walk *w, size_t i) { return &w->l->v[w->idx[i]]; }

static void add_edge(struct walk *w, uint64_t waiter, uint64_t waker, uint64_t ns)
{
	if (ns >= EVAL_EDGE_MIN && waker && waker != waiter && w->edges < EVAL_EDGES_MAX)
		w->ret[w->edges++] = (struct eval_edge){ waiter, waker };
}

/* The fact of this request before @i at @site by @goid (0: any); NULL: none. */
static const struct eval_fact *back_to(const struct walk *w, size_t i, enum eval_site site,
				       uint64_t goid)
{
	while (i-- > 0)
		if (at(w, i)->site == site && (!goid || at(w, i)->goid == goid))
			return at(w, i);
	return NULL;
}

/* Who gave up last what @f got, of any request. */
static const struct eval_fact *given_up(const struct walk *w, const struct eval_fact *f,
					enum eval_site site)
{
	for (const struct eval_fact *g = f; g-- > w->l->v && f->at_ns - g->at_ns < CC_S(10);)
		if (g->site == site && (site == EVAL_AT_UNLOCK || g->extra == f->extra))
			return g;
	return NULL;
}

/* The last of its children to be done ended the join. */
static void join(struct walk *w, size_t end)
{
	uint64_t me = at(w, end)->goid;
	const struct eval_fact *begin = back_to(w, end, EVAL_AT_JOIN_BEGIN, me);

	for (size_t i = end; begin && i-- > 0;) {
		const struct eval_fact *f = at(w, i);

		if (f->site != EVAL_AT_SPAWN_DONE || !f->has_extra || f->extra != me)
			continue;
		if (f->at_ns >= begin->at_ns)
			add_edge(w, me, f->goid, at(w, end)->at_ns - begin->at_ns);
		return;
	}
}

static void item(struct walk *w, size_t answer)
{
	const struct eval_fact *a = at(w, answer), *send = NULL, *done = NULL;

	for (size_t i = answer; i-- > 0;) {
		const struct eval_fact *f = at(w, i);

		if (f->extra != a->extra)
			continue;
		if (f->site == EVAL_AT_DONE && !done)
			done = f;
		if (f->site == EVAL_AT_SEND && f->goid == a->goid) {
			send = f;
			break;
		}
	}
	if (send && done)
		add_edge(w, a->goid, done->goid, a->at_ns - send->at_ns);
}

static void resource(struct walk *w, size_t got, enum eval_site wait, enum eval_site release)
{
	const struct eval_fact *f = at(w, got), *since = back_to(w, got, wait, f->goid);
	const struct eval_fact *from = since ? given_up(w, f, release) : NULL;

	if (from && from->at_ns >= since->at_ns)
		add_edge(w, f->goid, from->goid, f->at_ns - since->at_ns);
}

size_t eval_true_edges(const struct eval_log *l, const uint32_t *idx, size_t cnt,
		       struct eval_edge *ret)
{
	struct walk w = { .l = l, .idx = idx, .cnt = cnt, .ret = ret };

	for (size_t i = 0; i < cnt; i++) {
		switch ((enum eval_site)at(&w, i)->site) {
		case EVAL_AT_JOIN_END:
			join(&w, i);
			break;
		case EVAL_AT_ANSWER:
			item(&w, i);
			break;
		case EVAL_AT_ACQUIRE:
			resource(&w, i, EVAL_AT_POOL_WAIT, EVAL_AT_RELEASE);
			break;
		case EVAL_AT_LOCK:
			resource(&w, i, EVAL_AT_LOCK_WAIT, EVAL_AT_UNLOCK);
			break;
		default:
			break;
		}
	}
	return w.edges;
}

static int by_goids(const void *a, const void *b)
{
	const struct eval_edge *x = a, *y = b;

	if (x->waiter != y->waiter)
		return x->waiter < y->waiter ? -1 : 1;
	return (x->waker > y->waker) - (x->waker < y->waker);
}

static size_t once(struct eval_edge *e, size_t cnt)
{
	size_t kept = 0;

	if (cnt)
		qsort(e, cnt, sizeof(*e), by_goids);
	for (size_t i = 0; i < cnt; i++)
		if (!kept || by_goids(&e[kept - 1], &e[i]))
			e[kept++] = e[i];
	return kept;
}

double eval_jaccard(struct eval_edge *a, size_t a_cnt, struct eval_edge *b, size_t b_cnt)
{
	size_t shared = 0, i = 0, k = 0;

	a_cnt = once(a, a_cnt);
	b_cnt = once(b, b_cnt);
	while (i < a_cnt && k < b_cnt) {
		int c = by_goids(&a[i], &b[k]);

		shared += c == 0;
		i += c <= 0;
		k += c >= 0;
	}
	return a_cnt + b_cnt ? (double)shared / (double)(a_cnt + b_cnt - shared) : 1;
}
