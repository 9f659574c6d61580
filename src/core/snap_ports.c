/* SPDX-License-Identifier: Apache-2.0 */
/* One row per local port: how many requests, how slow, and one that speaks for its slow ones. */
#include "snap_build.h"

#include <errno.h>
#include <stdlib.h>

/* Of a port's requests, the part that counts as slow, for the choice of the one that is shown. */
#define SLOW_PART 4

struct port_state {
	uint32_t seen; /* in the order of latency */
	uint32_t pair; /* classes of dominant and root that most time of slow ones has (MJRTY) */
	cc_ns weight;
	const struct cc_request *any;
};

static uint32_t pair_of(const struct cc_request *r)
{
	return 1 + ((uint32_t)request_dominant(r)->cls << 8 | request_root(r)->cls);
}

static bool is_slow(const struct snap_port *p, uint32_t rank)
{
	return rank >= p->requests - CC_MAX(p->requests / SLOW_PART, 1u);
}

static uint32_t find(const struct snap_port *ports, uint32_t cnt, uint16_t port)
{
	uint32_t i = 0;

	while (i < cnt && ports[i].port != port)
		i++;
	return i;
}

static uint32_t count(const struct agg_sorted *s, struct snap_port *ports)
{
	uint32_t cnt = 0;

	for (size_t k = 0; k < s->cnt; k++) {
		uint16_t port = s->r[k]->rec.local_port;
		uint32_t i = find(ports, cnt, port);

		if (i == cnt && cnt < SNAP_PORTS)
			ports[cnt++].port = port;
		if (i < cnt)
			ports[i].requests += request_weight(s->r[k]);
	}
	return cnt;
}

static bool is_between(uint64_t from, uint64_t rank, uint64_t to)
{
	return rank >= from && rank < to;
}

static void vote(struct port_state *st, uint32_t pair, cc_ns weight)
{
	if (st->pair == pair) {
		st->weight += weight;
	} else if (st->weight < weight) {
		st->pair = pair;
		st->weight = weight - st->weight;
	} else {
		st->weight -= weight;
	}
}

/* Percentiles by nearest rank, and what most of the slow ones are. */
static void measure(const struct agg_sorted *s, struct snap_port *ports, uint32_t cnt,
		    struct port_state *st)
{
	for (size_t k = 0; k < s->cnt; k++) {
		const struct cc_request *r = s->r[k];
		uint32_t i = find(ports, cnt, r->rec.local_port);

		if (i == cnt)
			continue;
		struct snap_port *p = &ports[i];
		uint32_t rank = st[i].seen, next = rank + request_weight(r);

		st[i].seen = next;
		if (is_between(rank, (p->requests + 1) / 2 - 1, next))
			p->p50_ns = request_latency(r);
		if (is_between(rank, (99 * (uint64_t)p->requests + 99) / 100 - 1, next))
			p->p99_ns = request_latency(r);
		st[i].any = r;
		if (!r->path_ok || !is_slow(p, rank))
			continue;
		vote(&st[i], pair_of(r), request_latency(r));
	}
}

static void choose(struct snap_build *b, const struct agg_sorted *s, struct snap_port *ports,
		   uint32_t cnt, struct port_state *st)
{
	for (size_t k = s->cnt; k-- > 0;) {
		const struct cc_request *r = s->r[k];
		uint32_t i = find(ports, cnt, r->rec.local_port);

		if (i == cnt)
			continue;
		st[i].seen -= request_weight(r);
		if (r->path_ok && is_slow(&ports[i], st[i].seen) &&
		    ports[i].slow.kind == CC_REQID_NONE && pair_of(r) == st[i].pair)
			ports[i].slow = r->id;
	}
	for (uint32_t i = 0; i < cnt; i++) {
		if (ports[i].slow.kind == CC_REQID_NONE)
			ports[i].slow = st[i].any->id;
		ports[i].kind = labels_kind(&b->labels, ports[i].slow);
	}
}

static int by_p99(const void *pa, const void *pb)
{
	const struct snap_port *a = pa, *b = pb;

	if (a->p99_ns != b->p99_ns)
		return a->p99_ns > b->p99_ns ? -1 : 1;
	return (int)a->port - (int)b->port;
}

int snap_ports(struct snap_build *b)
{
	struct port_state st[SNAP_PORTS] = { 0 };
	struct agg_sorted sorted;

	if (!b->q->by_port)
		return 0;
	struct snap_port *ports = calloc(SNAP_PORTS, sizeof(*ports));

	if (!ports)
		return -ENOMEM;
	b->s->ports = ports;
	int err = agg_sort(b->match.p, b->match.cnt, &sorted);

	if (err)
		return err;
	uint32_t cnt = count(&sorted, ports);

	measure(&sorted, ports, cnt, st);
	choose(b, &sorted, ports, cnt, st);
	agg_sorted_done(&sorted);
	qsort(ports, cnt, sizeof(*ports), by_p99);
	b->s->port_cnt = cnt;
	return 0;
}
