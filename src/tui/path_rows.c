/* SPDX-License-Identifier: Apache-2.0 */
#include "path_rows.h"

#define FEW_ROWS 4

static cc_ns length(const struct snap_piece *p)
{
	return p->p.end > p->p.start ? p->p.end - p->p.start : 0;
}

uint32_t path_after(const struct snap_piece *p, uint32_t at, uint32_t cnt)
{
	uint32_t i = at + 1;
	while (i < cnt && p[i].p.depth > p[at].p.depth)
		i++;
	return i;
}

bool path_next(const struct path_view *v, uint32_t *at, struct path_row *ret)
{
	uint32_t i = *at;
	if (i >= v->to)
		return false;
	*ret = (struct path_row){ .first = i, .cnt = 1, .tops = 1, .ns = length(&v->p[i]) };
	*at = i + 1;
	if (ret->ns >= v->fold_ns)
		return true;
	uint32_t end = path_after(v->p, i, v->to);
	while (end < v->to && v->p[end].p.depth == v->p[i].p.depth &&
	       length(&v->p[end]) < v->fold_ns) {
		ret->tops++;
		ret->ns += length(&v->p[end]);
		end = path_after(v->p, end, v->to);
	}
	ret->cnt = end - i;
	*at = end;
	return true;
}

int path_row_cnt(const struct path_view *v)
{
	struct path_row row;
	int cnt = 0;
	for (uint32_t at = v->from; path_next(v, &at, &row);)
		cnt++;
	return cnt;
}

int path_row_of(const struct path_view *v, uint32_t piece)
{
	struct path_row row;
	int i = -1;
	for (uint32_t at = v->from; path_next(v, &at, &row) && row.first <= piece;)
		i++;
	return i < 0 ? 0 : i;
}

bool path_row_at(const struct path_view *v, int row, struct path_row *ret)
{
	uint32_t at = v->from;
	while (path_next(v, &at, ret))
		if (row-- == 0)
			return true;
	return false;
}

struct path_view path_view(const struct snapshot *s, const struct snap_request *r, uint32_t from,
			   uint32_t to, int room)
{
	static const unsigned int parts[] = { 1000, 300, 100, 30, 10 };
	uint32_t first = CC_MIN(r->first_piece, s->piece_cnt);
	uint32_t cnt = CC_MIN(r->piece_cnt, s->piece_cnt - first);
	struct path_view v = { .s = s, .p = s->pieces + first, .from = from, .to = to };
	v.to = CC_MIN(v.to, cnt);
	if (v.from >= v.to) { /* the path is another one by now */
		v.from = 0;
		v.to = cnt;
	}
	v.lo = r->start;
	v.hi = r->end;
	if (v.from || v.to < cnt) {
		v.lo = v.p[v.from].p.start;
		v.hi = v.p[v.from].p.end;
		for (uint32_t i = v.from; i < v.to; i++)
			v.hi = CC_MAX(v.hi, v.p[i].p.end);
	}
	v.hi = CC_MAX(v.hi, v.lo + 1);
	for (size_t i = 0; i < ARRAY_SIZE(parts) && room > 0 && path_row_cnt(&v) > room; i++) {
		cc_ns before = v.fold_ns;
		v.fold_ns = (v.hi - v.lo) / parts[i];
		if (path_row_cnt(&v) < FEW_ROWS) {
			v.fold_ns = before;
			break;
		}
	}
	return v;
}
