/* SPDX-License-Identifier: Apache-2.0 */
/* Who waits for whom: weights that are handed on, groups, wakes for nothing. Tasks are numbers. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "aggregate.h"
#include "digest.h"

static cc_str name_none(void *ctx, const struct cc_piece *p)
{
	(void)ctx;
	(void)p;
	return 0;
}
static cc_str name_waker(void *ctx, const struct cc_piece *p)
{
	(void)ctx;
	return p->waker_tid;
}
static cc_str name_holder(void *ctx, const struct cc_piece *p)
{
	(void)ctx;
	return p->holder_tid;
}
static cc_str name_task(void *ctx, const struct cc_piece *p)
{
	(void)ctx;
	return p->tid;
}
static cc_str name_device(void *ctx, const struct cc_piece *p)
{
	(void)ctx;
	return 9000 + p->cls;
}
static const struct agg_names names = { .site = name_none,
					.resource = name_none,
					.waker = name_waker,
					.holder = name_holder,
					.task = name_task,
					.device = name_device };

/* [from, to) ms of task @tid at @depth, ended by @waker. */
struct said {
	unsigned int depth, tid, from, to, cls, waker;
};

#define PIECES 16
struct path {
	struct cc_request r;
	struct cc_piece p[PIECES];
};

static void path_of(struct path *x, const struct said *v, uint32_t cnt)
{
	*x = (struct path){ 0 };
	for (uint32_t i = 0; i < cnt; i++)
		x->p[i] = (struct cc_piece){ .depth = (uint16_t)v[i].depth,
					     .tid = v[i].tid,
					     .start = CC_MS(v[i].from),
					     .end = CC_MS(v[i].to),
					     .cls = (uint8_t)v[i].cls,
					     .resource = 1,
					     .waker_tid = v[i].waker };
	x->r = (struct cc_request){ .path = x->p,
				    .path_cnt = cnt,
				    .path_ok = true,
				    .start = CC_MS(v[0].from),
				    .end = CC_MS(v[cnt - 1].to) };
}
#define PATH(x, ...)                                     \
	path_of(x, (const struct said[]){ __VA_ARGS__ }, \
		sizeof((const struct said[]){ __VA_ARGS__ }) / sizeof(struct said))

static struct agg_graph graph_of(const struct path *x, size_t cnt)
{
	const struct cc_request *r[4];
	struct agg_graph g;

	for (size_t i = 0; i < cnt; i++)
		r[i] = &x[i].r;
	cr_assert_eq(agg_graph(r, cnt, 100, &names, &g), 0);
	return g;
}

static void graph_free(struct agg_graph *g)
{
	free(g->edges);
	free(g->groups);
	free(g->members);
	free(g->shared);
}

static const struct snap_edge *edge(const struct agg_graph *g, cc_str from, cc_str to)
{
	for (uint32_t i = 0; i < g->edge_cnt; i++)
		if (g->edges[i].from == from && g->edges[i].to == to)
			return &g->edges[i];
	return NULL;
}

static void expect_edge(const struct agg_graph *g, cc_str from, cc_str to, unsigned int total,
			unsigned int own)
{
	const struct snap_edge *e = edge(g, from, to);

	cr_assert_not_null(e, "%u -> %u", from, to);
	cr_expect_eq(e->total_ns, CC_MS(total), "%u -> %u is %llu", from, to,
		     (unsigned long long)e->total_ns);
	cr_expect_eq(e->own_ns, CC_MS(own));
}

/* The paper's figure 4: C wakes B at t1, B wakes A at t2. A waited for B all the time, and through
 * it for C until t1: that is C's to have twice, once from B and once from A through B. */
Test(agg_graph, cascade_of_figure_4)
{
	enum { A = 1, B, C, T1 = 60, T2 = 100 };
	struct path x[3];
	struct agg_graph g;

	PATH(&x[0], { 0, A, 0, T2, WAIT_COND, B }, { 1, B, 0, T1, WAIT_COND, C },
	     { 2, C, 0, T1, WAIT_CPU, 0 }, { 1, B, T1, T2, WAIT_CPU, 0 });
	PATH(&x[1], { 0, B, 0, T1, WAIT_COND, C }, { 1, C, 0, T1, WAIT_CPU, 0 },
	     { 0, B, T1, T2, WAIT_CPU, 0 });
	PATH(&x[2], { 0, C, 0, T2, WAIT_CPU, 0 });
	g = graph_of(x, 3);
	cr_assert_eq(g.edge_cnt, 2);
	expect_edge(&g, B, C, 2 * T1, T1);
	expect_edge(&g, A, B, T2, T2);
	cr_expect_eq(g.edges[0].from, B, "the heaviest first: not who waited longest");
	/* nobody waits in a circle: C is where it ends */
	cr_assert_eq(g.group_cnt, 1);
	cr_expect_eq(g.groups[0].cnt, 1);
	cr_expect_eq(g.members[g.groups[0].first], C);
	cr_expect_eq(g.groups[0].outside_ns, 0);
	cr_expect_eq(g.groups[0].waited_ns, CC_MS(2 * T1));
	graph_free(&g);
}

Test(agg_graph, tasks_that_wait_for_each_other_only_are_a_knot)
{
	struct path x[4];
	struct agg_graph g;

	/* 1 and 2 for each other; 3 for 1; 4 and 5 for each other, and 5 for 1 */
	PATH(&x[0], { 0, 1, 0, 10, WAIT_COND, 2 }, { 0, 2, 10, 30, WAIT_COND, 1 });
	PATH(&x[1], { 0, 3, 0, 50, WAIT_COND, 1 });
	PATH(&x[2], { 0, 4, 0, 40, WAIT_COND, 5 }, { 0, 5, 40, 70, WAIT_COND, 4 });
	PATH(&x[3], { 0, 5, 0, 20, WAIT_COND, 1 });
	g = graph_of(x, 4);
	cr_assert_eq(g.group_cnt, 2);
	cr_expect_eq(g.groups[0].cnt, 2);
	cr_expect_eq(g.groups[0].outside_ns, 0, "a knot comes first");
	cr_expect_eq(g.groups[0].inside_ns, CC_MS(30));
	cr_expect_eq(g.groups[0].waited_ns, CC_MS(70));
	cr_expect(g.members[g.groups[0].first] == 1 || g.members[g.groups[0].first] == 2);
	cr_expect_eq(g.groups[1].cnt, 2);
	cr_expect_eq(g.groups[1].inside_ns, CC_MS(70));
	cr_expect_eq(g.groups[1].outside_ns, CC_MS(20));
	graph_free(&g);
}

/* A waits for B and for C, and between these C was seen to wait for D. */
Test(agg_graph, in_whatever_order_the_waits_of_a_knot_were_seen)
{
	enum { A = 1, B, C, D };
	struct path x[4];
	struct agg_graph g;

	PATH(&x[0], { 0, A, 0, 100, WAIT_COND, B });
	PATH(&x[1], { 0, C, 0, 100, WAIT_COND, D });
	PATH(&x[2], { 0, A, 0, 100, WAIT_COND, C });
	PATH(&x[3], { 0, D, 0, 100, WAIT_COND, A });
	g = graph_of(x, 4);
	cr_assert_eq(g.group_cnt, 2);
	cr_expect_eq(g.groups[0].cnt, 1, "B waits for nobody");
	cr_expect_eq(g.groups[0].waited_ns, CC_MS(100));
	cr_expect_eq(g.groups[1].cnt, 3, "A, C and D for each other");
	cr_expect_eq(g.groups[1].inside_ns, CC_MS(300));
	cr_expect_eq(g.groups[1].outside_ns, CC_MS(100));
	graph_free(&g);
}

Test(agg_graph, what_is_light_holds_no_group_together)
{
	struct path x[1];
	struct agg_graph g;

	PATH(&x[0], { 0, 1, 0, 996, WAIT_COND, 2 }, { 0, 2, 996, 1000, WAIT_COND, 1 });
	g = graph_of(x, 1);
	cr_assert_eq(g.edge_cnt, 2, "it is an edge");
	cr_assert_eq(g.group_cnt, 1);
	cr_expect_eq(g.groups[0].cnt, 1, "4 of 1000 ms are no knot");
	graph_free(&g);
}

Test(agg_graph, a_holder_before_a_waker_and_devices_where_there_is_no_task)
{
	struct path x[1];
	struct agg_graph g;

	PATH(&x[0], { 0, 1, 0, 10, WAIT_LOCK, 2 }, { 0, 1, 10, 30, WAIT_FSYNC, 0 },
	     { 0, 1, 30, 35, WAIT_SLEEP, 0 }, { 0, 1, 35, 40, WAIT_RUNQ, 0 },
	     { 0, 1, 40, 50, WAIT_HOL, 0 }, { 0, 1, 50, 60, WAIT_AMBIGUOUS, 7 });
	x[0].p[0].holder_tid = 3;
	g = graph_of(x, 1);
	cr_assert_eq(g.edge_cnt, 2);
	expect_edge(&g, 1, 3, 10, 10);
	expect_edge(&g, 1, 9000 + WAIT_FSYNC, 20, 20);
	graph_free(&g);
}

/* Woken by 2 for nothing, again by 3 for nothing, by 4 at last: all of it was for 4. A lock that is
 * tried again is no such thing: who let it go had it. */
Test(agg_graph, wakes_for_nothing_are_one_wait)
{
	struct path x[2];
	struct agg_graph g;

	PATH(&x[0], { 0, 1, 0, 10, WAIT_COND, 2 }, { 1, 2, 0, 10, WAIT_CPU, 0 },
	     { 0, 1, 10, 11, WAIT_RUNQ, 0 }, { 0, 1, 11, 11, WAIT_CPU, 0 },
	     { 0, 1, 11, 20, WAIT_COND, 3 }, { 0, 1, 20, 20, WAIT_CPU, 0 },
	     { 0, 1, 20, 30, WAIT_COND, 4 }, { 0, 1, 30, 31, WAIT_CPU, 0 },
	     { 0, 1, 31, 40, WAIT_COND, 2 });
	PATH(&x[1], { 0, 1, 0, 10, WAIT_LOCK, 2 }, { 0, 1, 10, 10, WAIT_CPU, 0 },
	     { 0, 1, 10, 20, WAIT_LOCK, 3 });
	g = graph_of(x, 2);
	cr_expect_eq(g.false_wakes, 2);
	expect_edge(&g, 1, 4, 10 + 9 + 10, 29);
	expect_edge(&g, 1, 2, 9 + 10, 19);
	expect_edge(&g, 1, 3, 10, 10);
	graph_free(&g);
}

Test(agg_graph, requests_that_stand_for_others_count_for_them)
{
	struct path x[1];
	struct agg_graph g;

	PATH(&x[0], { 0, 1, 0, 10, WAIT_COND, 2 });
	x[0].r.weight = 7;
	g = graph_of(x, 1);
	expect_edge(&g, 1, 2, 70, 70);
	cr_expect_eq(g.edges[0].waits, 7);
	graph_free(&g);
	g = graph_of(x, 0);
	cr_expect_eq(g.edge_cnt + g.group_cnt, 0);
	graph_free(&g);
}

/* Whose a thread was: of one request alone it is nobody's to share. */
Test(agg_graph, how_evenly_a_task_is_shared)
{
	struct path x[4];
	struct agg_graph g;

	PATH(&x[0], { 0, 1, 0, 10, WAIT_COND, 7 }, { 0, 1, 10, 20, WAIT_LOCK, 8 });
	PATH(&x[1], { 0, 2, 0, 10, WAIT_COND, 7 }, { 0, 2, 10, 20, WAIT_PIPE, 9 });
	PATH(&x[2], { 0, 3, 0, 5, WAIT_COND, 7 }, { 0, 3, 5, 10, WAIT_COND, 7 });
	PATH(&x[3], { 0, 4, 0, 970, WAIT_LOCK, 8 });
	g = graph_of(x, 4);
	cr_assert_eq(g.shared_cnt, 2);
	cr_expect_eq(g.shared[0].to, 8);
	cr_expect_eq(g.shared[0].requests, 2);
	cr_expect_eq(g.shared[0].total_ns, CC_MS(980));
	/* 10 of 980: 0.0102 x 6.615 + 0.9898 x 0.0148 bits of the one there could be */
	cr_expect_float_eq(g.shared[0].entropy, 0.0821, 0.001);
	cr_expect_eq(g.shared[1].to, 7);
	cr_expect_eq(g.shared[1].requests, 3);
	cr_expect_float_eq(g.shared[1].entropy, 1, 1e-9);
	graph_free(&g);
}
