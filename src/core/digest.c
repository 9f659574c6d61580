/* SPDX-License-Identifier: Apache-2.0 */
#include "digest.h"

#include <stdlib.h>
#include <string.h>

#include "confidence.h"

void leaf_iter_init(struct leaf_iter *it, const struct cc_piece *path, uint32_t cnt)
{
	it->path = path;
	it->cnt = cnt;
	it->next = it->leaf = it->known = it->top = 0;
	it->at[0] = 0;
}

static bool says_nothing(unsigned int cls) { return cls == WAIT_UNKNOWN || cls == WAIT_CYCLE; }

bool leaf_iter_next(struct leaf_iter *it)
{
	while (it->next < it->cnt) {
		uint32_t i = it->next++;
		uint32_t depth = CC_MIN(it->path[i].depth, CC_LEAF_DEPTH - 1u);

		it->at[depth] = i;
		if (it->next < it->cnt && it->path[it->next].depth > it->path[i].depth)
			continue; /* explained by what follows */
		it->leaf = it->known = i;
		it->top = it->at[0];
		while (depth > 0 && says_nothing(it->path[it->known].cls))
			it->known = it->at[--depth];
		return true;
	}
	return false;
}

/* ---- sums by (class, site, resource), and of the largest by culprit ---- */

struct group {
	uint64_t key; /* a place or a culprit */
	uint32_t resource;
	uint32_t first; /* index of its first piece */
	uint32_t longest;
	uint8_t cls;
	cc_ns ns;
};

/* However long a path is, it has a handful of groups as a rule: these are found by looking through
 * them. More are hashed: open addressing, twice as many slots as there is room for groups. */
#define GROUPS_FEW 16
struct groups {
	struct group *v;
	uint32_t cnt, cap;
	uint32_t *slots; /* 1 + index in v; NULL: look through v */
	bool failed;     /* no memory: some are missing */
	digest_site_fn *site;
	void *ctx;
	struct group few[GROUPS_FEW];
};

static uint64_t site_of(const struct groups *g, const struct cc_piece *p)
{
	return g->site ? g->site(g->ctx, p) : piece_site(p);
}

/* Whom a piece of this wait names: beneath another piece the task itself, who kept that one. */
static uint64_t culprit_of(const struct cc_piece *p)
{
	if (p->depth > 0)
		return p->tid;
	if (p->by_request.kind)
		return p->by_request.id << 20 ^ p->by_request.ordinal;
	if (p->occupant_tid)
		return p->occupant_tid;
	return p->holder_tid ? p->holder_tid : p->waker_tid;
}

static bool is_same(const struct group *a, const struct group *b)
{
	return a->key == b->key && a->resource == b->resource && a->cls == b->cls;
}

/* Where the number of @x is, or goes. */
static uint32_t *slot_of(const struct groups *g, const struct group *x)
{
	uint64_t h = (x->key ^ (uint64_t)x->resource << 8 ^ x->cls) * 0x9e3779b97f4a7c15ull;

	for (uint32_t i = (uint32_t)(h >> 32);; i++) {
		uint32_t *slot = &g->slots[i & (2 * g->cap - 1)];

		if (!*slot || is_same(&g->v[*slot - 1], x))
			return slot;
	}
}

/* The group that is as @x; v[cnt]: none. */
static struct group *group_of(const struct groups *g, const struct group *x)
{
	uint32_t i = 0;

	if (g->slots) {
		i = *slot_of(g, x);
		return &g->v[i ? i - 1 : g->cnt];
	}
	while (i < g->cnt && !is_same(&g->v[i], x))
		i++;
	return &g->v[i];
}

static void groups_free(struct groups *g)
{
	if (g->v != g->few)
		free(g->v);
	free(g->slots);
}

static bool groups_grow(struct groups *g)
{
	struct groups more = { .cnt = g->cnt, .cap = 4 * g->cap };

	more.v = malloc(more.cap * sizeof(*more.v));
	more.slots = calloc(2 * (size_t)more.cap, sizeof(*more.slots));
	if (!more.v || !more.slots) {
		groups_free(&more);
		return false;
	}
	memcpy(more.v, g->v, g->cnt * sizeof(*g->v));
	for (uint32_t i = 0; i < more.cnt; i++)
		*slot_of(&more, &more.v[i]) = i + 1;
	groups_free(g);
	g->v = more.v;
	g->cap = more.cap;
	g->slots = more.slots;
	return true;
}

/* NULL: no memory. */
static struct group *group_get(struct groups *g, const struct group *x)
{
	struct group *s = group_of(g, x);

	if (s < g->v + g->cnt)
		return s;
	if (g->cnt == g->cap && !groups_grow(g))
		return NULL;
	s = &g->v[g->cnt];
	*s = *x;
	if (g->slots)
		*slot_of(g, x) = g->cnt + 1;
	g->cnt++;
	return s;
}

static void group_add(struct groups *g, uint64_t key, const struct cc_piece *path, uint32_t idx,
		      cc_ns ns)
{
	const struct group x = { .key = key,
				 .resource = path[idx].resource,
				 .first = idx,
				 .longest = idx,
				 .cls = path[idx].cls };
	struct group *s = group_get(g, &x);

	if (!s) {
		g->failed = true;
		return;
	}
	s->first = CC_MIN(s->first, idx);
	if (piece_ns(&path[idx]) > piece_ns(&path[s->longest]))
		s->longest = idx;
	s->ns += ns;
}

/* NULL: there is none. */
static const struct group *largest(const struct groups *g)
{
	const struct group *best = NULL;

	for (uint32_t i = 0; i < g->cnt; i++) {
		const struct group *s = &g->v[i];

		if (!best || s->ns > best->ns || (s->ns == best->ns && s->first < best->first))
			best = s;
	}
	return best;
}

static void groups_clear(struct groups *g)
{
	g->cnt = 0;
	if (g->slots)
		memset(g->slots, 0, 2 * (size_t)g->cap * sizeof(*g->slots));
}

static bool same_group(const struct groups *g, const struct cc_piece *a, const struct cc_piece *b)
{
	return a->cls == b->cls && a->resource == b->resource && site_of(g, a) == site_of(g, b);
}

/* @whole: the group. @culprit: the largest of its parts by culprit. */
static struct cc_dominant dominant_of(const struct cc_piece *path, const struct group *whole,
				      const struct group *culprit)
{
	const struct cc_piece *p = &path[culprit->longest];

	return (struct cc_dominant){
		.cls = whole->cls,
		.ns = whole->ns,
		.piece = culprit->longest,
		.culprit_ns = culprit->ns,
		.resource = whole->resource,
		.ustack = piece_site(p),
		.kstack = p->kstack,
	};
}

static void find_first(struct groups *g, const struct cc_piece *path, uint32_t cnt,
		       struct cc_dominant *ret)
{
	const struct group *found;
	struct group whole;

	groups_clear(g);
	for (uint32_t i = 0; i < cnt; i++) {
		if (path[i].depth == 0)
			group_add(g, site_of(g, &path[i]), path, i, piece_ns(&path[i]));
	}
	found = largest(g);
	if (!found)
		return;
	whole = *found;
	groups_clear(g);
	for (uint32_t i = 0; i < cnt; i++) {
		if (path[i].depth == 0 && same_group(g, &path[i], &path[whole.longest]))
			group_add(g, culprit_of(&path[i]), path, i, piece_ns(&path[i]));
	}
	*ret = dominant_of(path, &whole, largest(g));
}

static void find_root(struct groups *g, const struct cc_piece *path, uint32_t cnt,
		      const struct cc_piece *first, struct cc_dominant *ret)
{
	const struct group *found;
	struct leaf_iter it;
	struct group whole;

	groups_clear(g);
	for (leaf_iter_init(&it, path, cnt); leaf_iter_next(&it);) {
		if (same_group(g, &path[it.top], first))
			group_add(g, site_of(g, &path[it.known]), path, it.known,
				  piece_ns(&path[it.leaf]));
	}
	found = largest(g);
	if (!found)
		return;
	whole = *found;
	groups_clear(g);
	for (leaf_iter_init(&it, path, cnt); leaf_iter_next(&it);) {
		if (same_group(g, &path[it.top], first) &&
		    same_group(g, &path[it.known], &path[whole.longest]))
			group_add(g, culprit_of(&path[it.known]), path, it.known,
				  piece_ns(&path[it.leaf]));
	}
	*ret = dominant_of(path, &whole, largest(g));
}

void digest_dominant(const struct cc_piece *path, uint32_t cnt, digest_site_fn *site, void *ctx,
		     struct cc_dominant *dominant, struct cc_dominant *root)
{
	struct groups g;

	memset(dominant, 0, sizeof(*dominant));
	memset(root, 0, sizeof(*root));
	if (!cnt)
		return;
	g.v = g.few;
	g.cnt = 0;
	g.cap = GROUPS_FEW;
	g.slots = NULL;
	g.failed = false;
	g.site = site;
	g.ctx = ctx;
	find_first(&g, path, cnt, dominant);
	find_root(&g, path, cnt, &path[dominant->piece], root);
	if (g.failed) { /* not attributed, rather than a guess from a part of the path */
		memset(dominant, 0, sizeof(*dominant));
		memset(root, 0, sizeof(*root));
	}
	groups_free(&g);
}

/* ---- the request ---- */

/* Sums over the deepest partition; its confidence is weighted by time, rounded down. */
static void sum_leaves(struct cc_request *r)
{
	/* times from a hostile file may be anything: scale so that 100 * ns fits */
	unsigned int shift = r->path_sum_ns >> 56 ? 8 : 0;
	uint64_t sum = 0, total = 0;
	struct leaf_iter it;

	for (leaf_iter_init(&it, r->path, r->path_cnt); leaf_iter_next(&it);) {
		const struct cc_piece *p = &r->path[it.leaf];
		cc_ns ns = piece_ns(p);

		if (wait_class_unexplained(p->cls))
			r->unexplained_ns += ns;
		if (p->cls == WAIT_AMBIGUOUS)
			r->ambiguous_ns += ns;
		sum += (ns >> shift) * CC_MIN(p->confidence, 100u);
		total += ns >> shift;
	}
	r->confidence = (uint8_t)(total ? sum / total : 0);
}

void request_digest(struct cc_request *r, struct cc_found *f)
{
	cc_ns latency = r->end > r->start ? r->end - r->start : 0;

	r->path_sum_ns = r->unexplained_ns = r->ambiguous_ns = 0;
	*f = (struct cc_found){ 0 };
	r->found = f;
	r->confidence = 0;
	digest_dominant(r->path, r->path_ok ? r->path_cnt : 0, NULL, NULL, &f->dominant, &f->root);
	if (!r->path_ok)
		return;
	for (uint32_t i = 0; i < r->path_cnt; i++) {
		const struct cc_piece *p = &r->path[i];

		if (p->depth > 0)
			continue;
		r->path_sum_ns += piece_ns(p);
		f->class_ns[p->cls < WAIT_CLASS_CNT ? p->cls : WAIT_UNKNOWN] += piece_ns(p);
	}
	sum_leaves(r);
	if (r->lost_inside)
		r->confidence = CC_MIN(r->confidence, CC_CONF_LOSS);
	cc_ns accounted =
		r->path_sum_ns > r->unexplained_ns ? r->path_sum_ns - r->unexplained_ns : 0;

	if (accounted < latency - latency / 10 || (r->rec.what & CC_RQ_CONCURRENT))
		r->confidence = CC_MIN(r->confidence, CC_CONF_GAPS);
}
