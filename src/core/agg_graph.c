/* SPDX-License-Identifier: Apache-2.0 */
/* The wait-for graph of many requests: an edge from who waited to whom it waited for, and the
 * groups that wait for nobody else, where a bottleneck must be (Zhou et al., "wPerf: Generic
 * Off-CPU Analysis to Identify Bottleneck Waiting Events", OSDI 2018). */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "aggregate.h"
#include "digest.h"
#include "map.h"

#define NODES_MAX 4096u
#define EDGES_MAX 65536u
#define LIGHT_SHARE 200 /* edges below so much of the time of all are not looked at for groups */
#define RETRIES_MAX 64
#define RETRY_RUN CC_US(50) /* ran no longer than this between two waits for one thing */

struct node {
	cc_str name;
	uint32_t first, cnt; /* its edges, once they are sorted */
	uint32_t order, low; /* of Tarjan's search; 0: not met */
	uint32_t group;      /* 1 + index; 0: none yet */
	/* requests that waited for it: of the one being added, so far; of all */
	cc_ns now_ns, total_ns;
	double x_log_x; /* sum of ns x log2(ns) of each */
	uint32_t requests;
};

struct graph {
	const struct agg_names *n;
	struct mem mem;
	struct map node_of; /* name -> 1 + index */
	struct map edge_of; /* from << 32 | to -> 1 + index */
	VEC(struct node) nodes;
	VEC(struct snap_edge) edges; /* from and to: indexes of nodes until they are named */
	cc_ns latency;
	uint32_t false_wakes;
	VEC(uint32_t) now; /* nodes that the request being added waited for */
	/* of the search */
	VEC(uint32_t) path, open; /* nodes being gone through; nodes without a group */
	VEC(struct snap_wait_group) groups;
	VEC(cc_str) members;
	VEC(struct snap_shared) shared;
	uint32_t met;
};

static int node_get(struct graph *g, cc_str name, uint32_t *ret)
{
	uint32_t at = map_get(&g->node_of, name);

	if (!at) {
		if (g->nodes.cnt >= NODES_MAX ||
		    vec_reserve(&g->mem, &g->nodes, g->nodes.cnt + 1) ||
		    map_put(&g->mem, &g->node_of, name, g->nodes.cnt + 1))
			return -ENOMEM;
		g->nodes.p[g->nodes.cnt++] = (struct node){ .name = name };
		at = g->nodes.cnt;
	}
	*ret = at - 1;
	return 0;
}

static int edge_add(struct graph *g, cc_str from, cc_str to, const struct cc_piece *p, cc_ns ns,
		    uint32_t weight)
{
	struct snap_edge *e;
	uint32_t a, b, at;
	uint64_t key;

	if (from == to || g->nodes.cnt + 2 > NODES_MAX || g->edges.cnt >= EDGES_MAX)
		return 0; /* more than anybody looks at */
	if (node_get(g, from, &a) || node_get(g, to, &b))
		return -ENOMEM;
	key = (uint64_t)a << 32 | b;
	at = map_get(&g->edge_of, key);
	if (!at) {
		if (vec_reserve(&g->mem, &g->edges, g->edges.cnt + 1) ||
		    map_put(&g->mem, &g->edge_of, key, g->edges.cnt + 1))
			return -ENOMEM;
		g->edges.p[g->edges.cnt++] = (struct snap_edge){ .from = a, .to = b };
		at = g->edges.cnt;
	}
	e = &g->edges.p[at - 1];
	e->total_ns += ns * weight;
	e->own_ns += p->depth == 0 ? ns * weight : 0;
	e->waits += weight;
	if (!g->nodes.p[b].now_ns) {
		if (vec_reserve(&g->mem, &g->now, g->now.cnt + 1))
			return -ENOMEM;
		g->now.p[g->now.cnt++] = b;
	}
	g->nodes.p[b].now_ns += ns;
	if (ns > e->longest_ns) {
		e->longest_ns = ns;
		e->cls = p->cls;
	}
	return 0;
}

/* Whom @p waits for: the task that had the thing, or that ended the wait; else what it is. 0: it is
 * no wait for anybody: running, in a run queue, asleep by itself, not known. */
static cc_str waits_for(const struct graph *g, const struct cc_piece *p)
{
	char letter = wait_class_letter(p->cls);

	if (letter == 'C' || letter == 'R' || letter == 'Q' || wait_class_unexplained(p->cls) ||
	    p->cls == WAIT_TRANSIT || p->cls == WAIT_FORK)
		return 0;
	if (p->holder_tid)
		return g->n->holder(g->n->ctx, p);
	if (p->waker_tid)
		return g->n->waker(g->n->ctx, p);
	return p->cls == WAIT_SLEEP ? 0 : g->n->device(g->n->ctx, p);
}

/* Woken for nothing: the thread looks, and waits for the same thing again at once. */
static bool is_retry(const struct cc_piece *wait, const struct cc_piece *again, cc_ns ran)
{
	return ran <= RETRY_RUN && wait->tid == again->tid && wait->cls == again->cls &&
	       wait->resource && wait->resource == again->resource &&
	       (wait->cls == WAIT_COND || wait->cls == WAIT_SEMA || wait->cls == WAIT_EPOLL ||
		wait->cls == WAIT_POLL);
}

/* The wait that goes on after a wake for nothing that ended path[@i]; 0: it was for something. */
static uint32_t goes_on(const struct cc_piece *path, uint32_t cnt, uint32_t i)
{
	uint16_t depth = path[i].depth;
	cc_ns ran = 0;

	for (uint32_t k = i + 1; k < cnt && path[k].depth >= depth; k++) {
		char letter = wait_class_letter(path[k].cls);

		if (path[k].depth > depth || letter == 'R')
			continue; /* beneath it, or on its way to a CPU */
		if (letter != 'C')
			return is_retry(&path[i], &path[k], ran) ? k : 0;
		ran += piece_ns(&path[k]);
	}
	return 0;
}

/* What a request waited for each node is known: one of so many shares of it. */
static void add_shares(struct graph *g, uint32_t weight)
{
	for (uint32_t i = 0; i < g->now.cnt; i++) {
		struct node *n = &g->nodes.p[g->now.p[i]];

		n->x_log_x += weight * (double)n->now_ns * log2((double)n->now_ns);
		n->total_ns += n->now_ns * weight;
		n->requests += weight;
		n->now_ns = 0;
	}
	g->now.cnt = 0;
}

/* Every wait of a path counts with whom it was for. Those of the waker within it are beneath it and
 * count again: its weight is handed on to what kept the waker (the cascade of the paper). */
static int add_path(struct graph *g, const struct cc_request *r)
{
	const struct cc_piece *path = request_path(r, g->n->path);
	int err = path ? 0 : -ENOMEM;

	g->latency += request_latency(r) * request_weight(r);
	for (uint32_t i = 0; i < r->path_cnt && !err; i++) {
		const struct cc_piece *p = &path[i], *end = p;
		cc_str to;
		uint32_t k = i;

		if (p->cls == WAIT_COND || p->cls == WAIT_SEMA || p->cls == WAIT_EPOLL ||
		    p->cls == WAIT_POLL) {
			uint32_t next = goes_on(path, r->path_cnt, k);

			g->false_wakes += next ? request_weight(r) : 0;
			for (int hops = 0; next && hops < RETRIES_MAX; hops++) {
				k = next; /* it was for who ended the last one */
				next = goes_on(path, r->path_cnt, k);
			}
			end = &path[k];
		}
		to = waits_for(g, end);
		if (to)
			err = edge_add(g, g->n->task(g->n->ctx, p), to, p, piece_ns(p),
				       request_weight(r));
	}
	add_shares(g, request_weight(r));
	return err;
}

/* ---- groups ------------------------------------------------------------------------------- */

static int by_from(const void *pa, const void *pb)
{
	const struct snap_edge *a = pa, *b = pb;

	if (a->from != b->from)
		return a->from < b->from ? -1 : 1;
	return a->to < b->to ? -1 : a->to > b->to;
}

static void index_edges(struct graph *g)
{
	if (g->edges.cnt) /* an empty array is NULL */
		qsort(g->edges.p, g->edges.cnt, sizeof(*g->edges.p), by_from);
	for (uint32_t i = g->edges.cnt; i-- > 0;) {
		struct node *n = &g->nodes.p[g->edges.p[i].from];

		n->first = i;
		n->cnt++;
	}
}

static bool is_light(const struct graph *g, const struct snap_edge *e)
{
	return e->total_ns < g->latency / LIGHT_SHARE;
}

/* All that were met since @v and have no group are one: each reaches each. */
static int close_group(struct graph *g, uint32_t v)
{
	struct snap_wait_group s = { .first = g->members.cnt };
	uint32_t w;

	if (vec_reserve(&g->mem, &g->groups, g->groups.cnt + 1))
		return -ENOMEM;
	do {
		w = g->open.p[--g->open.cnt];
		g->nodes.p[w].group = g->groups.cnt + 1;
		if (vec_reserve(&g->mem, &g->members, g->members.cnt + 1))
			return -ENOMEM;
		g->members.p[g->members.cnt++] = g->nodes.p[w].name;
	} while (w != v);
	s.cnt = g->members.cnt - s.first;
	g->groups.p[g->groups.cnt++] = s;
	return 0;
}

/* Tarjan's strongly connected components (SIAM J. Comput., 1972), without recursion: node.cnt of
 * edges are left to look at, the first of them is node.first. */
static int search_from(struct graph *g, uint32_t start)
{
	g->path.cnt = 0;
	for (uint32_t v = start;;) {
		struct node *n = &g->nodes.p[v];

		if (!n->order) {
			n->order = n->low = ++g->met;
			if (vec_reserve(&g->mem, &g->path, g->path.cnt + 1) ||
			    vec_reserve(&g->mem, &g->open, g->open.cnt + 1))
				return -ENOMEM;
			g->path.p[g->path.cnt++] = v;
			g->open.p[g->open.cnt++] = v;
		}
		if (n->cnt) {
			const struct snap_edge *e = &g->edges.p[n->first++];
			const struct node *to = &g->nodes.p[e->to];

			n->cnt--;
			if (is_light(g, e))
				continue;
			if (!to->order)
				v = e->to;
			else if (!to->group)
				n->low = CC_MIN(n->low, to->order);
			continue;
		}
		if (n->low == n->order && close_group(g, v))
			return -ENOMEM;
		if (!--g->path.cnt)
			return 0;
		v = g->path.p[g->path.cnt - 1];
		g->nodes.p[v].low = CC_MIN(g->nodes.p[v].low, n->low);
	}
}

static int find_groups(struct graph *g)
{
	int err = 0;

	index_edges(g);
	for (uint32_t i = 0; i < g->nodes.cnt && !err; i++)
		if (!g->nodes.p[i].order)
			err = search_from(g, i);
	for (uint32_t i = 0; i < g->edges.cnt && !err; i++) {
		const struct snap_edge *e = &g->edges.p[i];
		uint32_t a = g->nodes.p[e->from].group - 1, b = g->nodes.p[e->to].group - 1;

		if (is_light(g, e))
			continue;
		if (a == b) {
			g->groups.p[a].inside_ns += e->total_ns;
		} else {
			g->groups.p[a].outside_ns += e->total_ns;
			g->groups.p[b].waited_ns += e->total_ns;
		}
	}
	return err;
}

/* ---- what is told ------------------------------------------------------------------------- */

static int by_weight(const void *pa, const void *pb)
{
	const struct snap_edge *a = pa, *b = pb;

	if (a->total_ns != b->total_ns)
		return a->total_ns > b->total_ns ? -1 : 1;
	return by_from(a, b);
}

/* Knots first, by what is waited for them and within them. */
static int by_kind(const void *pa, const void *pb)
{
	const struct snap_wait_group *a = pa, *b = pb;
	cc_ns wa = a->inside_ns + a->waited_ns, wb = b->inside_ns + b->waited_ns;

	if (!a->outside_ns != !b->outside_ns)
		return a->outside_ns ? 1 : -1;
	if (wa != wb)
		return wa > wb ? -1 : 1;
	return a->first < b->first ? -1 : a->first > b->first;
}

/* A task alone that others hardly wait for, or that waits for others, is no group. */
static void keep_groups(struct graph *g)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < g->groups.cnt; i++) {
		const struct snap_wait_group *s = &g->groups.p[i];

		if (s->cnt > 1 || (!s->outside_ns && s->waited_ns))
			g->groups.p[kept++] = *s;
	}
	g->groups.cnt = kept;
}

static int by_shared(const void *pa, const void *pb)
{
	const struct snap_shared *a = pa, *b = pb;

	if (a->total_ns != b->total_ns)
		return a->total_ns > b->total_ns ? -1 : 1;
	return a->to < b->to ? -1 : a->to > b->to;
}

/* Of what more than one request waited for: the entropy of whose it was, of the most it could be
 * (all the same share). */
static int find_shared(struct graph *g)
{
	if (vec_reserve(&g->mem, &g->shared, g->nodes.cnt + 1))
		return -ENOMEM;
	for (uint32_t i = 0; i < g->nodes.cnt; i++) {
		const struct node *n = &g->nodes.p[i];
		double sum = (double)n->total_ns, entropy;

		if (n->requests < 2)
			continue;
		entropy = (log2(sum) - n->x_log_x / sum) / log2(n->requests);
		g->shared.p[g->shared.cnt++] =
			(struct snap_shared){ .to = n->name,
					      .requests = n->requests,
					      .total_ns = n->total_ns,
					      .entropy = CC_MAX(0.0, CC_MIN(1.0, entropy)) };
	}
	if (g->shared.cnt)
		qsort(g->shared.p, g->shared.cnt, sizeof(*g->shared.p), by_shared);
	return 0;
}

static void tell(struct graph *g, uint32_t max_rows, struct agg_graph *ret)
{
	keep_groups(g);
	if (g->groups.cnt)
		qsort(g->groups.p, g->groups.cnt, sizeof(*g->groups.p), by_kind);
	if (g->edges.cnt)
		qsort(g->edges.p, g->edges.cnt, sizeof(*g->edges.p), by_weight);
	for (uint32_t i = 0; i < g->edges.cnt; i++) {
		g->edges.p[i].from = g->nodes.p[g->edges.p[i].from].name;
		g->edges.p[i].to = g->nodes.p[g->edges.p[i].to].name;
	}
	*ret = (struct agg_graph){
		.edges = g->edges.p,
		.groups = g->groups.p,
		.members = g->members.p,
		.edge_cnt = CC_MIN(g->edges.cnt, max_rows),
		.group_cnt = CC_MIN(g->groups.cnt, max_rows),
		.member_cnt = g->members.cnt,
		.shared = g->shared.p,
		.shared_cnt = CC_MIN(g->shared.cnt, max_rows),
		.false_wakes = g->false_wakes,
	};
	g->edges.p = NULL;
	g->groups.p = NULL;
	g->members.p = NULL;
	g->shared.p = NULL;
}

int agg_graph(const struct cc_request *const *r, size_t cnt, uint32_t max_rows,
	      const struct agg_names *n, struct agg_graph *ret)
{
	struct graph g = { .n = n };
	int err = 0;

	for (size_t i = 0; i < cnt && !err; i++)
		if (r[i]->path_ok)
			err = add_path(&g, r[i]);
	if (!err)
		err = find_groups(&g);
	if (!err)
		err = find_shared(&g);
	if (!err)
		tell(&g, max_rows, ret);
	map_done(&g.mem, &g.node_of);
	map_done(&g.mem, &g.edge_of);
	vec_done(&g.mem, &g.nodes);
	vec_done(&g.mem, &g.path);
	vec_done(&g.mem, &g.open);
	vec_done(&g.mem, &g.now);
	free(g.edges.p);
	free(g.groups.p);
	free(g.members.p);
	free(g.shared.p);
	return err;
}
