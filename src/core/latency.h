/* SPDX-License-Identifier: Apache-2.0 */
/* latency: when each finished request ended and how long it took, and nothing else of it: so that
 * counts and percentiles of a window are exact, whatever else was forgotten of its requests. Kept
 * in runs, one per refresh, each sorted once: a window is asked for without going through it. */
#ifndef CC_LATENCY_H
#define CC_LATENCY_H

#include "mem.h"

struct lat_row {
	cc_ns latency, end;
};

struct lat_run {              /* requests that were worked out together */
	cc_ns from, to;       /* earliest and latest end */
	struct lat_row *rows; /* by latency, then end */
	cc_ns *ends;          /* by time */
	uint32_t cnt, cap;
};

struct latencies { /* all zero: none */
	VEC(struct lat_run) runs;
};

/* Takes @cnt rows, in any order; they are sorted in place. Returns 0 or -ENOMEM. */
CC_NODISCARD int latencies_add(struct mem *mem, struct latencies *l, struct lat_row *rows,
			       uint32_t cnt);
void latencies_del(struct latencies *l, struct lat_row row); /* one that is not there: a no-op */
void latencies_evict(struct mem *mem, struct latencies *l, cc_ns before);
void latencies_done(struct mem *mem, struct latencies *l);

/* Earliest end that is kept; UINT64_MAX: none. */
cc_ns latencies_oldest(const struct latencies *l);

/* ---- asking for a window [lo, hi], both included ---- */

struct lat_part {                   /* of one run */
	const struct lat_row *rows; /* by latency */
	const struct lat_run *run;
	uint32_t cnt, left; /* left: see nth_longest() */
	uint32_t lo, hi;    /* see at_rank() */
};
struct lat_view {
	const struct latencies *l;
	cc_ns lo, hi;
	struct lat_row *edge; /* rows of runs that are in it only in part */
	uint32_t cnt;
	VEC(struct lat_part) parts;
};

/* Returns 0 or -ENOMEM. The view holds as long as @l is left alone. */
CC_NODISCARD int lat_view_open(struct mem *mem, const struct latencies *l, cc_ns lo, cc_ns hi,
			       struct lat_view *ret);
void lat_view_done(struct mem *mem, struct lat_view *v);

/* Smallest latency that @permille of 1000 are not above, by nearest rank; 0 of none. */
cc_ns lat_percentile(const struct lat_view *v, unsigned int permille);

/* The @nth longest, from 1; 0: there are not so many. */
cc_ns lat_longest(const struct lat_view *v, uint32_t nth);

/* p99 of the requests that ended in each of @slices equal parts of the window; 0: none did. */
void lat_p99_line(struct lat_view *v, unsigned int slices, cc_ns *ret);

#endif
