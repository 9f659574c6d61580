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
	struct agg_sorted s = { malloc((cnt + 1) * sizeof(*s.r)), 0 };
	struct by_latency *keys = malloc((cnt + 1) * sizeof(*keys));

	if (!s.r || !keys) {
		free(s.r);
		free(keys);
		return -ENOMEM;
	}
	for (size_t i = 0; i < cnt; i++) {
		if (!(r[i]->rec.what & CC_RQ_STREAM))
			keys[s.cnt++] =
				(struct by_latency){ request_latency(r[i]), r[i]->end, r[i] };
	}
	qsort(keys, s.cnt, sizeof(*keys), by_latency);
	for (size_t i = 0; i < s.cnt; i++)
		s.r[i] = keys[i].r;
	free(keys);
	*ret = s;
	return 0;
}

void agg_sorted_done(struct agg_sorted *s)
{
	free(s->r);
	memset(s, 0, sizeof(*s));
}

static size_t rank_of(size_t cnt, unsigned int permille) /* from 0; @cnt > 0 */
{
	size_t up = (cnt * permille + 999) / 1000;

	return up ? up - 1 : 0;
}

cc_ns agg_percentile(const struct agg_sorted *s, unsigned int permille)
{
	return s->cnt ? request_latency(s->r[rank_of(s->cnt, permille)]) : 0;
}

struct agg_range agg_slow(const struct agg_sorted *s)
{
	cc_ns p95 = agg_percentile(s, 950);
	struct agg_range ret = { s->cnt, s->cnt };

	while (ret.from > 0 && request_latency(s->r[ret.from - 1]) >= p95)
		ret.from--;
	return ret;
}

struct agg_range agg_typical(const struct agg_sorted *s)
{
	if (!s->cnt)
		return (struct agg_range){ 0, 0 };
	return (struct agg_range){ rank_of(s->cnt, 400), rank_of(s->cnt, 600) + 1 };
}

void agg_mix(const struct agg_sorted *s, struct agg_range range, cc_ns ret[9])
{
	static const char groups[] = WAIT_GROUPS;

	memset(ret, 0, 9 * sizeof(*ret));
	for (size_t i = range.from; i < range.to; i++) {
		for (unsigned int c = 0; c < WAIT_CLASS_CNT; c++) {
			const char *g = strchr(groups, wait_class_letter(c));

			if (g && *g)
				ret[g - groups] += request_found(s->r[i])->class_ns[c];
		}
	}
}

static cc_ns mean_class_ns(const struct agg_sorted *s, struct agg_range range, unsigned int cls)
{
	cc_ns sum = 0;

	for (size_t i = range.from; i < range.to; i++)
		sum += request_found(s->r[i])->class_ns[cls];
	return range.to > range.from ? sum / (range.to - range.from) : 0;
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
	struct agg_range slow = agg_slow(s), typical = agg_typical(s);
	uint32_t cnt = 0;

	for (unsigned int c = 0; c < WAIT_CLASS_CNT; c++) {
		struct snap_slow_typical row = {
			.cls = (uint8_t)c,
			.slow_ns = mean_class_ns(s, slow, c),
			.typical_ns = mean_class_ns(s, typical, c),
		};

		if (row.slow_ns || row.typical_ns)
			ret[cnt++] = row;
	}
	qsort(ret, cnt, sizeof(*ret), by_difference);
	return cnt;
}

/* ---- over time ---- */

int agg_p99_line(const struct agg_sorted *s, cc_ns lo, cc_ns hi, unsigned int slices, cc_ns *ret)
{
	uint32_t *cnt = calloc(2 * (size_t)slices, sizeof(*cnt));
	cc_ns width = (hi - lo + slices - 1) / slices;

	if (!cnt)
		return -ENOMEM;
	uint32_t *seen = cnt + slices;

	memset(ret, 0, slices * sizeof(*ret));
	/* the requests come by latency: the one of rank p99 in its slice is its p99 */
	for (int pass = 0; pass < 2 && width; pass++) {
		for (size_t i = 0; i < s->cnt; i++) {
			cc_ns end = s->r[i]->end;

			if (end < lo || end > hi)
				continue;
			size_t slice = CC_MIN((end - lo) / width, slices - 1);

			if (pass == 0)
				cnt[slice]++;
			else if (seen[slice]++ == rank_of(cnt[slice], 990))
				ret[slice] = request_latency(s->r[i]);
		}
	}
	free(cnt);
	return 0;
}

void agg_conf_share(const struct cc_request *const *r, size_t cnt, double ret[3])
{
	size_t n[3] = { 0 };

	for (size_t i = 0; i < cnt; i++) {
		char letter = confidence_letter(r[i]->confidence);

		n[letter == 'H' ? 0 : letter == 'M' ? 1 : 2]++;
	}
	for (int i = 0; i < 3; i++)
		ret[i] = cnt ? (double)n[i] / (double)cnt : 0;
}
