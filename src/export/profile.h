/* SPDX-License-Identifier: Apache-2.0 */
/* profile: the stacks of a snapshot as the tables that pprof and OTLP profiles are made of:
 * strings, functions, locations, mappings, and samples that refer to them, each once. Numbers are 1
 * + index, 0 is none; string 0 is "". */
#ifndef CC_PROFILE_H
#define CC_PROFILE_H

#include "map.h"
#include "mem.h"
#include "snapshot.h"
#include "strpool.h"

#define PROF_LABELS(X)              \
	X(REQUEST, "request")       \
	X(CLASS, "class")           \
	X(CONFIDENCE, "confidence") \
	X(TASK, "task")
#define X(id, name) PROF_##id,
enum prof_label { PROF_LABELS(X) PROF_LABEL_CNT };
#undef X

struct prof_function {
	uint32_t name, file; /* strings */
};
struct prof_line {
	uint32_t function, line;
};
struct prof_location { /* an address; a "[...]" frame has none */
	uint64_t address;
	uint32_t mapping;
	uint32_t first, cnt; /* in lines[]: what was inlined first, the function itself last */
};
struct prof_mapping {
	uint64_t start, end, file_off;
	uint32_t file, build_id; /* strings */
};
struct prof_sample {
	uint32_t first, cnt;            /* in ids[]: locations, innermost first */
	uint32_t label[PROF_LABEL_CNT]; /* strings */
	uint32_t request;               /* index in the snapshot's */
	cc_ns ns;
	uint64_t waits;
};

struct profile {
	struct mem mem;
	struct strpool pool;
	struct map string_ids, function_ids, location_ids, mapping_ids, sample_ids;
	VEC(uint32_t) strings; /* offsets in pool: profile_string() */
	VEC(struct prof_function) functions;
	VEC(struct prof_line) lines;
	VEC(struct prof_location) locations;
	VEC(struct prof_mapping) mappings;
	VEC(uint32_t) ids;
	VEC(struct prof_sample) samples;
	uint32_t label_name[PROF_LABEL_CNT]; /* strings */
	uint32_t type[2], unit[2];           /* strings of the two values: ns, waits */
};

/* Returns 0 or -ENOMEM; profile_done() in any case. */
CC_NODISCARD int profile_build(const struct snapshot *s, struct profile *ret);
void profile_done(struct profile *p);

/* Number of a string, which is added when it is new. Returns 0 or -ENOMEM. */
CC_NODISCARD int profile_add_string(struct profile *p, const char *text, size_t len, uint32_t *ret);
const char *profile_string(const struct profile *p, uint32_t id); /* 0: "" */

#endif
