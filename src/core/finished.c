/* SPDX-License-Identifier: Apache-2.0 */
/* Which requests are kept: what is on a list, shown, or known by its operations only so far. */
#include <errno.h>
#include <string.h>

#include "request.h"

/* ---- lists -------------------------------------------------------------------------------- */

int requests_list(struct requests *rs, enum req_list which, struct req *r)
{
	struct req_vec *v = &rs->list[which];

	if (r->lists >> which & 1)
		return 0;
	if (vec_reserve(rs->mem, v, v->cnt + 1) ||
	    (which == LIST_FRESH && vec_reserve(rs->mem, &rs->fresh_ends, v->cnt + 1)))
		return -ENOMEM;
	if (which == LIST_FRESH)
		rs->fresh_ends.p[v->cnt] = r->pub.end;
	r->lists |= (uint8_t)(1u << which);
	v->p[v->cnt++] = r;
	return 0;
}

static void drop_if_unneeded(struct requests *rs, struct req *r)
{
	if (!r->lists && !(r->finished && r->pub.weight))
		requests_drop(rs, r);
}

void requests_unlist(struct requests *rs, enum req_list which, req_stay_fn *stay, void *ctx)
{
	struct req_vec *v = &rs->list[which];
	uint32_t kept = 0;

	for (uint32_t i = 0; i < v->cnt; i++) {
		struct req *r = v->p[i];

		if (i + REQ_PREFETCH < v->cnt)
			req_prefetch(v->p[i + REQ_PREFETCH]);
		if (stay(ctx, r)) {
			v->p[kept++] = r;
			continue;
		}
		r->lists &= (uint8_t) ~(1u << which);
		drop_if_unneeded(rs, r);
	}
	v->cnt = kept;
}

/* It has all of the last refreshes: only what may go is looked at itself. */
void requests_unlist_fresh(struct requests *rs, cc_ns before, bool open)
{
	struct req_vec *v = &rs->list[LIST_FRESH];
	cc_ns *ends = rs->fresh_ends.p;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < v->cnt; i++) {
		struct req *r = v->p[i];

		if (i + REQ_PREFETCH < v->cnt && ends[i + REQ_PREFETCH] < before)
			req_prefetch(v->p[i + REQ_PREFETCH]);
		if (ends[i] >= before || r->pub.end >= before || (!open && !r->computed)) {
			v->p[kept] = r;
			ends[kept++] = ends[i];
			continue;
		}
		r->lists &= (uint8_t) ~(1u << LIST_FRESH);
		drop_if_unneeded(rs, r);
	}
	v->cnt = kept;
}

/* ---- finished ----------------------------------------------------------------------------- */

int request_by_end(const struct cc_request *a, const struct cc_request *b)
{
	if (a->end != b->end)
		return a->end < b->end ? -1 : 1;
	if (a->id.kind != b->id.kind)
		return a->id.kind < b->id.kind ? -1 : 1;
	if (a->id.id != b->id.id)
		return a->id.id < b->id.id ? -1 : 1;
	return (a->id.ordinal > b->id.ordinal) - (a->id.ordinal < b->id.ordinal);
}

/* The first of those shown that is not before @r. */
static uint32_t shown_at(const struct requests *rs, const struct cc_request *r)
{
	uint32_t lo = 0, hi = rs->shown.cnt;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (request_by_end(rs->shown.p[mid], r) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static int add_untimed(struct requests *rs, struct req_untimed u)
{
	uint32_t i;

	if (vec_reserve(rs->mem, &rs->untimed, rs->untimed.cnt + 1))
		return -ENOMEM;
	for (i = rs->untimed.cnt++; i > 0 && rs->untimed.p[i - 1].end > u.end; i--)
		rs->untimed.p[i] = rs->untimed.p[i - 1];
	rs->untimed.p[i] = u;
	return 0;
}

static struct req_untimed untimed_of(const struct cc_request *p)
{
	return (struct req_untimed){ p->end, (p->rec.what & CC_RQ_APART) != 0 };
}

int requests_finish(struct requests *rs, struct req *r)
{
	uint32_t i;

	if (!r->explains && r->pub.rec.what & CC_RQ_UNTIMED && add_untimed(rs, untimed_of(&r->pub)))
		return -ENOMEM;
	r->finished = true;
	if (!r->pub.weight)
		return 0;
	if (vec_reserve(rs->mem, &rs->shown, rs->shown.cnt + 1))
		return -ENOMEM;
	i = rs->shown.cnt;
	if (i > 0 && request_by_end(rs->shown.p[i - 1], &r->pub) > 0)
		i = shown_at(rs, &r->pub);
	memmove(&rs->shown.p[i + 1], &rs->shown.p[i], (rs->shown.cnt - i) * sizeof(*rs->shown.p));
	rs->shown.p[i] = &r->pub;
	rs->shown.cnt++;
	return 0;
}

static void del_untimed(struct requests *rs, struct req_untimed u)
{
	for (uint32_t i = rs->untimed.cnt; i-- > 0;) {
		if (rs->untimed.p[i].end != u.end || rs->untimed.p[i].apart != u.apart)
			continue;
		rs->untimed.cnt--;
		memmove(&rs->untimed.p[i], &rs->untimed.p[i + 1],
			(rs->untimed.cnt - i) * sizeof(*rs->untimed.p));
		return;
	}
}

void requests_unfinish(struct requests *rs, struct req *r)
{
	const struct cc_request *p = &r->pub;

	if (!r->finished)
		return;
	r->finished = false;
	if (r->explains)
		return;
	if (p->rec.what & CC_RQ_UNTIMED)
		del_untimed(rs, untimed_of(p));
	else
		latencies_del(&rs->lat, (struct lat_row){ p->end - p->start, p->end });
	if (p->weight) {
		uint32_t i = shown_at(rs, p);

		if (i == rs->shown.cnt || rs->shown.p[i] != p)
			return;
		rs->shown.cnt--;
		memmove(&rs->shown.p[i], &rs->shown.p[i + 1],
			(rs->shown.cnt - i) * sizeof(*rs->shown.p));
	}
}

/* ---- going -------------------------------------------------------------------------------- */

uint64_t requests_evict_shown(struct requests *rs, cc_ns before)
{
	uint32_t n = 0;

	while (n < rs->shown.cnt && rs->shown.p[n]->end < before) {
		struct req *r = (struct req *)rs->shown.p[n++]; /* pub is its first member */

		r->pub.weight = 0;
		path_drop(rs->mem, &r->pub);
		drop_if_unneeded(rs, r);
	}
	if (n)
		vec_drop_front(&rs->shown, n);
	return n;
}

void requests_evict_latencies(struct requests *rs, cc_ns before)
{
	uint32_t n = 0;

	latencies_evict(rs->mem, &rs->lat, before);
	while (n < rs->untimed.cnt && rs->untimed.p[n].end < before)
		n++;
	if (n)
		vec_drop_front(&rs->untimed, n);
}

uint64_t requests_sweep(struct requests *rs, cc_ns before, uint32_t cnt)
{
	uint64_t dropped = 0;

	for (cnt = CC_MIN(cnt, rs->v.cnt); cnt > 0; cnt--, rs->sweep++) {
		struct req *r;

		if (rs->sweep >= rs->v.cnt)
			rs->sweep = 0;
		r = rs->v.p[rs->sweep];
		if (!r || r->told || r->lists || r->seen >= before)
			continue;
		requests_drop(rs, r);
		dropped++;
	}
	return dropped;
}
