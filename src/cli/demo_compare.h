/* SPDX-License-Identifier: Apache-2.0 */
/* demo_compare: criticast's answers against the demo's own log. Pure: no clock, file or output. */
#ifndef CC_DEMO_COMPARE_H
#define CC_DEMO_COMPARE_H

#include "demo_log.h"
#include "snapshot.h"

struct demo_score {
	uint32_t requests;      /* judged: their cause made most of their latency, says the log */
	uint32_t unclear;       /* something else did (a busy machine): not judged */
	uint32_t lost;          /* not right, but says itself that events were lost: not judged */
	uint32_t missing;       /* of requests: criticast does not know them */
	uint32_t class_right;   /* of requests: dominant wait (and its root) and its ns are right */
	uint32_t culprit_right; /* of requests: holder, occupant, peer or request in the way */
	uint32_t high, high_right; /* of requests: confidence >= 90; of these, both right */
	uint32_t inexact; /* of all of this cause: the path does not partition the latency */
	/* the first answer that was wrong, to look at; kind 0: none */
	struct cc_reqid wrong_id;
};

/* One request that the log has a clear word on, also one that says itself that events were lost. */
struct demo_verdict {
	const struct snap_request *row;
	enum demo_cause cause;
	bool class_right, culprit_right;
};
struct demo_listener { /* is told each verdict; tell NULL: nobody is */
	void (*tell)(void *arg, const struct demo_verdict *v);
	void *arg;
};

/* What a right answer is, for people: "lock > disk, held by the flushing request". */
const char *demo_expectation(enum demo_cause cause);

/* Judges all causes. @s has to hold every request of the run. Returns 0; -ENOMEM; -EOVERFLOW when
 * the log was too small for the run, so that nothing can be said. */
CC_NODISCARD int demo_compare(const struct demo_shared *log, const struct snapshot *s,
			      struct demo_listener each, struct demo_score ret[DEMO_CAUSE_CNT]);

/* Requests of @cause so far that the log has a clear word on. May be asked while others write it.
 */
uint32_t demo_clear_cnt(const struct demo_shared *log, enum demo_cause cause);

#define DEMO_REQUESTS_MIN 10 /* fewer prove nothing */

/* At least 95 % right in both, enough requests, at most one in five of them lost, sums exact. */
bool demo_score_ok(const struct demo_score *s);

#endif
