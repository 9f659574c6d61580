/* SPDX-License-Identifier: Apache-2.0 */
#include "answer_trace.h"
#include "paths.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- answers ------------------------------------------------------------------------------ */

/* Feeds the records in order of their times, as one ring would have given them. */
static void run(struct trace *t)
{
	struct rec_list *l = t->recs;

	if (t->e)
		return;
	for (size_t i = 1; i < l->cnt; i++) {
		struct cc_rec *r = l->rec[i];
		size_t k = i;

		for (; k > 0 && l->rec[k - 1]->ts > r->ts; k--)
			l->rec[k] = l->rec[k - 1];
		l->rec[k] = r;
	}
	cr_assert_eq(engine_new(&(struct engine_opts){ 0 }, &t->e), 0);
	for (size_t i = 0; i < l->cnt; i++)
		cr_assert_eq(engine_feed(t->e, l->rec[i], l->rec[i]->size), 0, "record %zu", i);
	cr_assert_eq(engine_finish(t->e), 0);
}

struct engine *trace_engine(struct trace *t)
{
	run(t);
	return t->e;
}

/* Every level partitions the piece above it; the top one [lo, hi). */
static void check_partition(const struct cc_piece *p, size_t cnt, cc_ns lo, cc_ns hi)
{
	cc_ns at[64] = { lo }, end[64] = { hi };

	for (size_t i = 0, depth = 0; i < cnt; i++) {
		cr_assert_leq(p[i].depth, depth + (i > 0));
		cr_assert_lt(p[i].depth, 63);
		for (; depth > p[i].depth; depth--)
			cr_assert_eq(at[depth], end[depth], "depth %zu before piece %zu", depth, i);
		if (p[i].depth > depth) {
			depth++;
			at[depth] = p[i - 1].start;
			end[depth] = p[i - 1].end;
			cr_assert(p[i - 1].flags & CC_PC_NESTED);
		}
		cr_assert_eq(p[i].start, at[depth], "piece %zu", i);
		cr_assert_gt(p[i].end, p[i].start);
		at[depth] = p[i].end;
		if (i + 1 == cnt)
			for (size_t d = 0; d <= depth; d++)
				cr_assert_eq(at[d], end[d], "depth %zu at the end", d);
	}
	cr_assert_gt(cnt, 0);
}

static bool says_same(const struct cc_piece *a, const struct cc_piece *b)
{
	return a->tid == b->tid && a->cls == b->cls && a->end == b->start &&
	       cc_reqid_eq(a->by_request, b->by_request);
}

static long unit(cc_ns t) { return (long)(((int64_t)t - BASE) / UNIT); }

static void print_piece(FILE *f, const struct cc_piece *p, cc_ns end)
{
	if (p->goid)
		fprintf(f, "g%llu:", (unsigned long long)p->goid);
	else if (p->cls != WAIT_TRANSIT)
		fprintf(f, "%d:", (int)(p->tid - TGID));
	fputs(wait_class_json(p->cls), f);
	if (p->by_request.kind != CC_REQID_NONE)
		fprintf(f, "(%c)", p->by_request.id == SOCKET(Q) ? 'Q' : 'R');
	fprintf(f, "[%ld,%ld)", unit(p->start), unit(end));
}

static void assert_pieces(const struct cc_piece *p, size_t cnt, const char *want)
{
	char *got = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&got, &len);
	const struct cc_piece *first = NULL, *last = NULL;

	cr_assert(f);
	for (size_t i = 0; i < cnt; i++) {
		if (i + 1 < cnt && p[i + 1].depth > p[i].depth)
			continue;
		if (!last || !says_same(last, &p[i])) {
			if (last) {
				print_piece(f, first, last->end);
				fputc(' ', f);
			}
			first = &p[i];
		}
		last = &p[i];
	}
	if (last)
		print_piece(f, first, last->end);
	fclose(f);
	cr_assert_str_eq(got, want, "\n got %s\nwant %s", got, want);
	free(got);
}

void assert_walk_keep(struct trace *t, int tid, int lo, int hi, const char *want)
{
	struct cc_piece *p;
	size_t cnt;

	run(t);
	cr_assert_eq(engine_walk(t->e, TID(tid), AT(lo), AT(hi), &p, &cnt), 0);
	assert_pieces(p, cnt, want);
	check_partition(p, cnt, AT(lo), AT(hi));
	free(p);
}

void assert_walk(struct trace *t, int tid, int lo, int hi, const char *want)
{
	assert_walk_keep(t, tid, lo, hi, want);
	trace_done(t);
}

static const struct cc_request *find_request(struct trace *t, int id)
{
	size_t cnt;
	const struct cc_request *const *r;

	run(t);
	r = engine_requests(t->e, &cnt);
	for (size_t i = 0; i < cnt; i++)
		if (r[i]->id.id == SOCKET(id) && r[i]->id.ordinal == 1)
			return r[i];
	cr_assert(false, "request not found");
	return NULL;
}

void assert_path_keep(struct trace *t, int id, const char *want)
{
	const struct cc_request *r = find_request(t, id);

	cr_assert(r->path_ok);
	assert_pieces(path_of(r), r->path_cnt, want);
	check_partition(path_of(r), r->path_cnt, r->start, r->end);
	cr_assert_eq(r->path_sum_ns, r->end - r->start);
}

void assert_path(struct trace *t, int id, const char *want)
{
	assert_path_keep(t, id, want);
	trace_done(t);
}

const struct cc_piece *trace_piece(struct trace *t, int id, enum wait_class cls)
{
	const struct cc_request *r = find_request(t, id);
	const struct cc_piece *path = path_of(r);

	for (uint32_t i = 0; i < r->path_cnt; i++)
		if (path[i].cls == cls)
			return &path[i];
	cr_assert(false, "no piece of class %s", wait_class_json(cls));
	return NULL;
}

struct cc_piece trace_walk_piece(struct trace *t, int tid, int lo, int hi, enum wait_class cls)
{
	struct cc_piece *p, found = { 0 };
	size_t cnt;

	run(t);
	cr_assert_eq(engine_walk(t->e, TID(tid), AT(lo), AT(hi), &p, &cnt), 0);
	for (size_t i = 0; i < cnt && !found.end; i++)
		if (p[i].cls == cls)
			found = p[i];
	free(p);
	cr_assert(found.end, "no piece of class %s", wait_class_json(cls));
	return found;
}
