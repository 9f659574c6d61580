/* SPDX-License-Identifier: Apache-2.0 */
#include "digest.h"

#include <stdlib.h>
#include <string.h>

#include "confidence.h"

void leaf_iter_init(struct leaf_iter *it, const struct cc_piece *path, uint32_t cnt)
{
	memset(it, 0, sizeof(*it));
	it->path = path;
	it->cnt = cnt;
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
	uint32_t piece; /* 1 + index of its first piece; 0: slot is free */
	uint32_t longest;
	uint8_t cls;
	cc_ns ns;
};

/* Open addressing, a power of two of slots, at least twice as many as pieces: never full. */
struct groups {
	struct group *slots;
	uint32_t mask;
	digest_site_fn *site;
	void *ctx;
};

static uint64_t site_of(const struct groups *g, const struct cc_piece *p)
{
	return g->site ? g->site(g->ctx, p) : p->ustack;
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

static struct group *group_of(struct groups *g, uint64_t key, const struct cc_piece *p)
{
	uint64_t h = (key ^ (uint64_t)p->resource << 8 ^ p->cls) * 0x9e3779b97f4a7c15ull;

	for (uint32_t i = (uint32_t)(h >> 32);; i++) {
		struct group *s = &g->slots[i & g->mask];

		if (!s->piece) {
			s->key = key;
			s->resource = p->resource;
			s->cls = p->cls;
			return s;
		}
		if (s->key == key && s->resource == p->resource && s->cls == p->cls)
			return s;
	}
}

static void group_add(struct groups *g, uint64_t key, const struct cc_piece *path, uint32_t idx,
		      cc_ns ns)
{
	struct group *s = group_of(g, key, &path[idx]);

	if (!s->piece) {
		s->piece = idx + 1;
		s->longest = idx;
	}
	s->piece = CC_MIN(s->piece, idx + 1);
	if (piece_ns(&path[idx]) > piece_ns(&path[s->longest]))
		s->longest = idx;
	s->ns += ns;
}

static struct group largest(const struct groups *g)
{
	struct group best = { 0 };

	for (uint32_t i = 0; i <= g->mask; i++) {
		const struct group *s = &g->slots[i];

		if (s->piece &&
		    (!best.piece || s->ns > best.ns || (s->ns == best.ns && s->piece < best.piece)))
			best = *s;
	}
	return best;
}

static void groups_clear(struct groups *g)
{
	memset(g->slots, 0, (g->mask + 1) * sizeof(*g->slots));
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
		.ustack = p->ustack,
		.kstack = p->kstack,
	};
}

static void find_first(struct groups *g, const struct cc_piece *path, uint32_t cnt,
		       struct cc_dominant *ret)
{
	for (uint32_t i = 0; i < cnt; i++) {
		if (path[i].depth == 0)
			group_add(g, site_of(g, &path[i]), path, i, piece_ns(&path[i]));
	}
	struct group whole = largest(g), culprit;

	if (!whole.piece)
		return;
	groups_clear(g);
	for (uint32_t i = 0; i < cnt; i++) {
		if (path[i].depth == 0 && same_group(g, &path[i], &path[whole.longest]))
			group_add(g, culprit_of(&path[i]), path, i, piece_ns(&path[i]));
	}
	culprit = largest(g);
	*ret = dominant_of(path, &whole, &culprit);
}

static void find_root(struct groups *g, const struct cc_piece *path, uint32_t cnt,
		      const struct cc_piece *first, struct cc_dominant *ret)
{
	struct leaf_iter it;

	groups_clear(g);
	for (leaf_iter_init(&it, path, cnt); leaf_iter_next(&it);) {
		if (same_group(g, &path[it.top], first))
			group_add(g, site_of(g, &path[it.known]), path, it.known,
				  piece_ns(&path[it.leaf]));
	}
	struct group whole = largest(g), culprit;

	if (!whole.piece)
		return;
	groups_clear(g);
	for (leaf_iter_init(&it, path, cnt); leaf_iter_next(&it);) {
		if (same_group(g, &path[it.top], first) &&
		    same_group(g, &path[it.known], &path[whole.longest]))
			group_add(g, culprit_of(&path[it.known]), path, it.known,
				  piece_ns(&path[it.leaf]));
	}
	culprit = largest(g);
	*ret = dominant_of(path, &whole, &culprit);
}

static void find_dominant(struct groups *g, const struct cc_piece *path, uint32_t cnt,
			  struct cc_dominant *dominant, struct cc_dominant *root)
{
	find_first(g, path, cnt, dominant);
	find_root(g, path, cnt, &path[dominant->piece], root);
}

#define SMALL_PATH 64 /* pieces; most requests: no allocation for them */

void digest_dominant(const struct cc_piece *path, uint32_t cnt, digest_site_fn *site, void *ctx,
		     struct cc_dominant *dominant, struct cc_dominant *root)
{
	struct group small[2 * SMALL_PATH];
	struct groups g = { small, ARRAY_SIZE(small) - 1, site, ctx };

	memset(dominant, 0, sizeof(*dominant));
	memset(root, 0, sizeof(*root));
	if (!cnt)
		return;
	if (cnt <= SMALL_PATH) {
		memset(small, 0, sizeof(small));
		find_dominant(&g, path, cnt, dominant, root);
		return;
	}
	while (g.mask < 2 * (uint64_t)cnt)
		g.mask = g.mask << 1 | 1;
	g.slots = calloc((size_t)g.mask + 1, sizeof(*g.slots));
	if (!g.slots) /* not attributed, rather than a guess from a part of the path */
		return;
	find_dominant(&g, path, cnt, dominant, root);
	free(g.slots);
}

/* ---- the request ---- */

/* Time-weighted confidence of the deepest partition, rounded down. */
static uint8_t path_confidence(const struct cc_request *r)
{
	/* times from a hostile file may be anything: scale so that 100 * ns fits */
	unsigned int shift = r->path_sum_ns >> 56 ? 8 : 0;
	uint64_t sum = 0, total = 0;
	struct leaf_iter it;

	for (leaf_iter_init(&it, r->path, r->path_cnt); leaf_iter_next(&it);) {
		const struct cc_piece *p = &r->path[it.leaf];

		sum += (piece_ns(p) >> shift) * CC_MIN(p->confidence, 100u);
		total += piece_ns(p) >> shift;
	}
	if (!total)
		return 0;
	return (uint8_t)(sum / total);
}

void request_digest(struct cc_request *r)
{
	cc_ns latency = r->end > r->start ? r->end - r->start : 0;
	struct leaf_iter it;

	r->path_sum_ns = r->unexplained_ns = r->ambiguous_ns = 0;
	memset(r->class_ns, 0, sizeof(r->class_ns));
	r->confidence = 0;
	digest_dominant(r->path, r->path_ok ? r->path_cnt : 0, NULL, NULL, &r->dominant, &r->root);
	if (!r->path_ok)
		return;
	for (uint32_t i = 0; i < r->path_cnt; i++) {
		const struct cc_piece *p = &r->path[i];

		if (p->depth > 0)
			continue;
		r->path_sum_ns += piece_ns(p);
		r->class_ns[p->cls < WAIT_CLASS_CNT ? p->cls : WAIT_UNKNOWN] += piece_ns(p);
	}
	for (leaf_iter_init(&it, r->path, r->path_cnt); leaf_iter_next(&it);) {
		const struct cc_piece *p = &r->path[it.leaf];

		if (wait_class_unexplained(p->cls))
			r->unexplained_ns += piece_ns(p);
		if (p->cls == WAIT_AMBIGUOUS)
			r->ambiguous_ns += piece_ns(p);
	}
	r->confidence = path_confidence(r);
	if (r->lost_inside)
		r->confidence = CC_MIN(r->confidence, CC_CONF_LOSS);
	cc_ns accounted =
		r->path_sum_ns > r->unexplained_ns ? r->path_sum_ns - r->unexplained_ns : 0;

	if (accounted < latency - latency / 10)
		r->confidence = CC_MIN(r->confidence, CC_CONF_GAPS);
}
