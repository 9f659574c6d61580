/* SPDX-License-Identifier: Apache-2.0 */
#include "latency.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RUN_MAX 65536u /* a run that is in a window only in part is gone through */

static int by_latency(const void *pa, const void *pb)
{
	const struct lat_row *a = pa, *b = pb;

	if (a->latency != b->latency)
		return a->latency < b->latency ? -1 : 1;
	return (a->end > b->end) - (a->end < b->end);
}

#define DIGIT_BITS 11
#define DIGITS (1u << DIGIT_BITS)

static cc_ns key_of(const struct lat_row *r, bool by_time) { return by_time ? r->end : r->latency; }

/* Stable, least digit first; @tmp has room for as many. Only the digits in which keys differ are
 * gone through: three for what lies within seconds. */
static void sort_rows(struct lat_row *rows, struct lat_row *tmp, uint32_t cnt, bool by_time)
{
	cc_ns lo = UINT64_MAX, hi = 0;

	for (uint32_t i = 0; i < cnt; i++) {
		lo = CC_MIN(lo, key_of(&rows[i], by_time));
		hi = CC_MAX(hi, key_of(&rows[i], by_time));
	}
	for (unsigned int shift = 0; shift < 64 && cnt && (hi - lo) >> shift; shift += DIGIT_BITS) {
		uint32_t at[DIGITS] = { 0 }, sum = 0;

		for (uint32_t i = 0; i < cnt; i++)
			at[(key_of(&rows[i], by_time) - lo) >> shift & (DIGITS - 1)]++;
		for (uint32_t d = 0; d < DIGITS; d++) {
			uint32_t n = at[d];

			at[d] = sum;
			sum += n;
		}
		for (uint32_t i = 0; i < cnt; i++)
			tmp[at[(key_of(&rows[i], by_time) - lo) >> shift & (DIGITS - 1)]++] =
				rows[i];
		memcpy(rows, tmp, cnt * sizeof(*rows));
	}
}

static uint32_t ends_below(const struct lat_run *r, cc_ns at) /* how many ended before @at */
{
	uint32_t lo = 0, hi = r->cnt;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (r->ends[mid] < at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void run_free(struct mem *mem, struct lat_run *r)
{
	mem_free(mem, r->rows, r->cap * sizeof(*r->rows));
	mem_free(mem, r->ends, r->cap * sizeof(*r->ends));
}

/* @rows are by end; @tmp has room for as many. */
static int run_add(struct mem *mem, struct latencies *l, const struct lat_row *rows,
		   struct lat_row *tmp, uint32_t cnt)
{
	struct lat_run r = { .from = rows[0].end, .to = rows[cnt - 1].end, .cnt = cnt, .cap = cnt };

	r.rows = mem_alloc(mem, cnt * sizeof(*r.rows));
	r.ends = mem_alloc(mem, cnt * sizeof(*r.ends));
	if (!r.rows || !r.ends || vec_reserve(mem, &l->runs, l->runs.cnt + 1)) {
		run_free(mem, &r);
		return -ENOMEM;
	}
	memcpy(r.rows, rows, cnt * sizeof(*rows));
	for (uint32_t i = 0; i < cnt; i++)
		r.ends[i] = rows[i].end;
	sort_rows(r.rows, tmp, cnt, false); /* stable: equal ones stay by end */
	l->runs.p[l->runs.cnt++] = r;
	return 0;
}

int latencies_add(struct mem *mem, struct latencies *l, struct lat_row *rows, uint32_t cnt)
{
	struct lat_row *tmp = cnt ? malloc(cnt * sizeof(*tmp)) : NULL;
	int err = 0;

	if (cnt && !tmp)
		return -ENOMEM;
	sort_rows(rows, tmp, cnt, true);
	for (uint32_t i = 0, n; i < cnt && !err; i += n) {
		n = CC_MIN(cnt - i, RUN_MAX);
		err = run_add(mem, l, rows + i, tmp, n);
	}
	free(tmp);
	return err;
}

void latencies_del(struct latencies *l, struct lat_row row)
{
	for (uint32_t i = l->runs.cnt; i-- > 0;) {
		struct lat_run *r = &l->runs.p[i];
		const struct lat_row *at;
		uint32_t k;

		if (row.end < r->from || row.end > r->to)
			continue;
		at = bsearch(&row, r->rows, r->cnt, sizeof(*r->rows), by_latency);
		if (!at)
			continue;
		k = ends_below(r, row.end);
		r->cnt--;
		memmove((void *)at, at + 1, (size_t)(r->rows + r->cnt - at) * sizeof(*r->rows));
		memmove(&r->ends[k], &r->ends[k + 1], (r->cnt - k) * sizeof(*r->ends));
		return;
	}
}

void latencies_evict(struct mem *mem, struct latencies *l, cc_ns before)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < l->runs.cnt; i++) {
		if (l->runs.p[i].to < before)
			run_free(mem, &l->runs.p[i]);
		else
			l->runs.p[kept++] = l->runs.p[i];
	}
	l->runs.cnt = kept;
}

void latencies_done(struct mem *mem, struct latencies *l)
{
	latencies_evict(mem, l, UINT64_MAX);
	for (uint32_t i = 0; i < l->runs.cnt; i++)
		run_free(mem, &l->runs.p[i]);
	vec_done(mem, &l->runs);
}

cc_ns latencies_oldest(const struct latencies *l)
{
	cc_ns first = UINT64_MAX;

	for (uint32_t i = 0; i < l->runs.cnt; i++)
		if (l->runs.p[i].cnt)
			first = CC_MIN(first, l->runs.p[i].from);
	return first;
}

/* ---- a window ---- */

static bool is_partial(const struct lat_run *r, cc_ns lo, cc_ns hi)
{
	return r->to >= lo && r->from <= hi && (r->from < lo || r->to > hi);
}

int lat_view_open(struct mem *mem, const struct latencies *l, cc_ns lo, cc_ns hi,
		  struct lat_view *ret)
{
	struct lat_view v = { .l = l, .lo = lo, .hi = hi };
	size_t edge = 0, used = 0;

	for (uint32_t i = 0; i < l->runs.cnt; i++)
		if (is_partial(&l->runs.p[i], lo, hi))
			edge += l->runs.p[i].cnt;
	v.edge = malloc((edge + 1) * sizeof(*v.edge));
	if (!v.edge || vec_reserve(mem, &v.parts, l->runs.cnt + 1)) {
		free(v.edge);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < l->runs.cnt; i++) {
		const struct lat_run *r = &l->runs.p[i];
		struct lat_part p = { .rows = r->rows, .run = r, .cnt = r->cnt };

		if (!r->cnt || r->to < lo || r->from > hi)
			continue;
		if (is_partial(r, lo, hi)) {
			p.rows = v.edge + used;
			for (uint32_t k = 0; k < r->cnt; k++)
				if (r->rows[k].end >= lo && r->rows[k].end <= hi)
					v.edge[used++] = r->rows[k];
			p.cnt = (uint32_t)(v.edge + used - p.rows);
		}
		v.cnt += p.cnt;
		v.parts.p[v.parts.cnt++] = p;
	}
	*ret = v;
	return 0;
}

void lat_view_done(struct mem *mem, struct lat_view *v)
{
	free(v->edge);
	vec_done(mem, &v->parts);
	*v = (struct lat_view){ 0 };
}

/* How many rows of @p took @latency at most, when that is between lo and hi. */
static uint32_t not_above(const struct lat_part *p, cc_ns latency)
{
	uint32_t lo = p->lo, hi = p->hi;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (p->rows[mid].latency <= latency)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* The same of those that took less. */
static uint32_t below(const struct lat_part *p, cc_ns latency)
{
	return latency ? not_above(p, latency - 1) : p->lo;
}

static uint32_t rank_of(uint32_t cnt, unsigned int permille) /* from 1 */
{
	return (uint32_t)CC_MAX(((uint64_t)cnt * permille + 999) / 1000, 1u);
}

/* The part with most rows that may still be the one looked for; NULL: none has any. */
static const struct lat_part *widest(const struct lat_view *v)
{
	const struct lat_part *best = NULL;

	for (uint32_t i = 0; i < v->parts.cnt; i++) {
		const struct lat_part *p = &v->parts.p[i];

		if (p->hi > p->lo && (!best || p->hi - p->lo > best->hi - best->lo))
			best = p;
	}
	return best;
}

/* The latency that @rank, from 1, of the window are not above. What cannot be it is put outside
 * [lo, hi) of its part, by the middle of the widest, until nothing is left. */
static cc_ns at_rank(const struct lat_view *v, uint32_t rank)
{
	const struct lat_part *p;
	cc_ns found = 0;

	for (uint32_t i = 0; i < v->parts.cnt; i++) {
		v->parts.p[i].lo = 0;
		v->parts.p[i].hi = v->parts.p[i].cnt;
	}
	while ((p = widest(v)) != NULL) {
		cc_ns pivot = p->rows[p->lo + (p->hi - p->lo) / 2].latency;
		uint32_t sum = 0;

		for (uint32_t i = 0; i < v->parts.cnt; i++)
			sum += v->parts.p[i].left = not_above(&v->parts.p[i], pivot);
		if (sum >= rank)
			found = pivot;
		for (uint32_t i = 0; i < v->parts.cnt; i++) {
			struct lat_part *q = &v->parts.p[i];

			if (sum < rank)
				q->lo = q->left;
			else /* equal ones are no better than the pivot */
				q->hi = below(q, pivot);
		}
	}
	return found;
}

cc_ns lat_percentile(const struct lat_view *v, unsigned int permille)
{
	return v->cnt ? at_rank(v, rank_of(v->cnt, permille)) : 0;
}

cc_ns lat_longest(const struct lat_view *v, uint32_t nth)
{
	return nth && nth <= v->cnt ? at_rank(v, v->cnt - nth + 1) : 0;
}

/* How many ended in [lo, hi]; only their parts have something left. */
static uint32_t look_at(struct lat_view *v, cc_ns lo, cc_ns hi)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < v->parts.cnt; i++) {
		struct lat_part *p = &v->parts.p[i];
		uint32_t n = ends_below(p->run, hi + 1) - ends_below(p->run, lo);

		p->left = n ? p->cnt : 0;
		sum += n;
	}
	return sum;
}

/* The @nth longest (from 1) of those looked at; 0: there are not so many. */
static cc_ns nth_longest(struct lat_view *v, cc_ns lo, cc_ns hi, uint32_t nth)
{
	struct lat_part *best = NULL;

	for (; nth > 0; nth--) {
		best = NULL;
		for (uint32_t i = 0; i < v->parts.cnt; i++) {
			struct lat_part *p = &v->parts.p[i];

			while (p->left &&
			       (p->rows[p->left - 1].end < lo || p->rows[p->left - 1].end > hi))
				p->left--;
			if (p->left && (!best || p->rows[p->left - 1].latency >
							 best->rows[best->left - 1].latency))
				best = p;
		}
		if (!best)
			return 0;
		best->left--;
	}
	return best ? best->rows[best->left].latency : 0;
}

void lat_p99_line(struct lat_view *v, unsigned int slices, cc_ns *ret)
{
	cc_ns width = (v->hi - v->lo + slices - 1) / slices;

	memset(ret, 0, slices * sizeof(*ret));
	for (unsigned int i = 0; i < slices && width; i++) {
		cc_ns lo = v->lo + i * width;
		cc_ns hi = i + 1 == slices ? v->hi : CC_MIN(lo + width - 1, v->hi);
		uint32_t n = lo <= v->hi ? look_at(v, lo, hi) : 0;

		if (n)
			ret[i] = nth_longest(v, lo, hi, n - rank_of(n, 990) + 1);
	}
}
