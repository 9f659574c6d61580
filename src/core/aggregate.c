/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "confidence.h"

cc_ns request_latency(const struct cc_request *r)
{
	return r->end > r->start ? r->end - r->start : 0;
}

static int by_id(struct cc_reqid a, struct cc_reqid b)
{
	if (a.id != b.id)
		return a.id < b.id ? -1 : 1;
	return a.ordinal < b.ordinal ? -1 : a.ordinal > b.ordinal;
}

struct by_latency { /* keys beside the pointers: requests are far apart in memory */
	cc_ns latency, end;
	const struct cc_request *r;
};

static int by_latency(const void *pa, const void *pb)
{
	const struct by_latency *a = pa, *b = pb;

	if (a->latency != b->latency)
		return a->latency < b->latency ? -1 : 1;
	if (a->end != b->end)
		return a->end < b->end ? -1 : 1;
	return by_id(a->r->id, b->r->id);
}

int agg_sort(const struct cc_request *const *r, size_t cnt, struct agg_sorted *ret)
{
	struct agg_sorted s = { .r = malloc((cnt + 1) * sizeof(*s.r)) };
	struct by_latency *keys = malloc((cnt + 1) * sizeof(*keys));

	if (!s.r || !keys) {
		free(s.r);
		free(keys);
		return -ENOMEM;
	}
	for (size_t i = 0; i < cnt; i++) {
		if (!(r[i]->rec.what & CC_RQ_UNTIMED))
			keys[s.cnt++] =
				(struct by_latency){ request_latency(r[i]), r[i]->end, r[i] };
	}
	qsort(keys, s.cnt, sizeof(*keys), by_latency);
	for (size_t i = 0; i < s.cnt; i++) {
		s.r[i] = keys[i].r;
		s.weight += request_weight(s.r[i]);
	}
	free(keys);
	s.p95 = agg_percentile(&s, 950);
	*ret = s;
	return 0;
}

void agg_sorted_done(struct agg_sorted *s)
{
	free(s->r);
	memset(s, 0, sizeof(*s));
}

static uint64_t rank_of(uint64_t cnt, unsigned int permille) /* from 0; @cnt > 0 */
{
	uint64_t up = (cnt * permille + 999) / 1000;

	return up ? up - 1 : 0;
}

/* Index of the one that has rank @rank among those that they stand for. */
static size_t at_rank(const struct agg_sorted *s, uint64_t rank)
{
	uint64_t seen = 0;

	for (size_t i = 0; i < s->cnt; i++) {
		seen += request_weight(s->r[i]);
		if (seen > rank)
			return i;
	}
	return s->cnt ? s->cnt - 1 : 0;
}

cc_ns agg_percentile(const struct agg_sorted *s, unsigned int permille)
{
	return s->cnt ? request_latency(s->r[at_rank(s, rank_of(s->weight, permille))]) : 0;
}

struct agg_range agg_slow(const struct agg_sorted *s)
{
	struct agg_range ret = { s->cnt, s->cnt };

	while (ret.from > 0 && request_latency(s->r[ret.from - 1]) >= s->p95)
		ret.from--;
	return ret;
}

struct agg_range agg_typical(const struct agg_sorted *s)
{
	if (!s->cnt)
		return (struct agg_range){ 0, 0 };
	return (struct agg_range){ at_rank(s, rank_of(s->weight, 400)),
				   at_rank(s, rank_of(s->weight, 600)) + 1 };
}

/* ns by class of depth 0. Returns how many requests they are of. */
static uint64_t sum_classes(const struct agg_sorted *s, struct agg_range range,
			    cc_ns ret[WAIT_CLASS_CNT])
{
	uint64_t cnt = 0;

	memset(ret, 0, WAIT_CLASS_CNT * sizeof(*ret));
	for (size_t i = range.from; i < range.to; i++) {
		struct cc_found buf;
		const struct cc_found *f = request_found(s->r[i], &buf);

		for (unsigned int c = 0; c < WAIT_CLASS_CNT; c++)
			ret[c] += f->class_ns[c] * request_weight(s->r[i]);
		cnt += request_weight(s->r[i]);
	}
	return cnt;
}

void agg_mix(const struct agg_sorted *s, struct agg_range range, cc_ns ret[9])
{
	static const char groups[] = WAIT_GROUPS;

	cc_ns sum[WAIT_CLASS_CNT];

	sum_classes(s, range, sum);
	memset(ret, 0, 9 * sizeof(*ret));
	for (unsigned int c = 0; c < WAIT_CLASS_CNT; c++) {
		const char *g = strchr(groups, wait_class_letter(c));

		if (g && *g)
			ret[g - groups] += sum[c];
	}
}

static int by_difference(const void *pa, const void *pb)
{
	const struct snap_slow_typical *a = pa, *b = pb;
	int64_t da = (int64_t)(a->slow_ns - a->typical_ns);
	int64_t db = (int64_t)(b->slow_ns - b->typical_ns);

	if (da != db)
		return da > db ? -1 : 1;
	return (int)a->cls - (int)b->cls;
}

uint32_t agg_slow_typical(const struct agg_sorted *s, struct snap_slow_typical *ret)
{
	cc_ns slow[WAIT_CLASS_CNT], typical[WAIT_CLASS_CNT];
	uint64_t slow_cnt = sum_classes(s, agg_slow(s), slow);
	uint64_t typical_cnt = sum_classes(s, agg_typical(s), typical);
	uint32_t cnt = 0;

	for (unsigned int c = 0; c < WAIT_CLASS_CNT; c++) {
		struct snap_slow_typical row = {
			.cls = (uint8_t)c,
			.slow_ns = slow_cnt ? slow[c] / slow_cnt : 0,
			.typical_ns = typical_cnt ? typical[c] / typical_cnt : 0,
		};

		if (row.slow_ns || row.typical_ns)
			ret[cnt++] = row;
	}
	qsort(ret, cnt, sizeof(*ret), by_difference);
	return cnt;
}

void agg_conf_share(const struct cc_request *const *r, size_t cnt, double ret[3])
{
	uint64_t n[3] = { 0 }, all = 0;

	for (size_t i = 0; i < cnt; i++) {
		char letter = confidence_letter(r[i]->confidence);

		n[letter == 'H' ? 0 : letter == 'M' ? 1 : 2] += request_weight(r[i]);
		all += request_weight(r[i]);
	}
	for (int i = 0; i < 3; i++)
		ret[i] = all ? (double)n[i] / (double)all : 0;
}
