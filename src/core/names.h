/* SPDX-License-Identifier: Apache-2.0 */
/* names: stacks, mappings and texts as records told them. Raw: nothing here is sanitized. */
#ifndef CC_NAMES_H
#define CC_NAMES_H

#include "engine.h" /* struct engine_stack, engine_frame, engine_target */
#include "map.h"

struct name_stack {
	uint64_t key;
	uint32_t first, cnt; /* in ips */
	uint32_t tgid, flags, gen;
	uint32_t next; /* 1 + index of another with the same hash */
};

struct name_text {
	uint64_t id, id2;
	uint32_t kind, tgid; /* CC_NAME_* */
	uint32_t off;        /* in text; NUL-terminated */
	uint16_t len[2];
	uint32_t next;
};

struct name_module {
	uint64_t start, end, file_off, gen;
	uint32_t tgid;
	uint32_t off, len; /* path in text, NUL-terminated */
	uint8_t build_id[24], build_id_len;
};

struct name_target {
	uint32_t tgid;
	bool followed; /* explains: its requests are no rows */
	char comm[CC_COMM_LEN + 1];
};

struct names {
	struct mem *mem;
	size_t limit; /* bytes that names may take; beyond it they are refused */
	uint64_t refused;
	VEC(char) text;
	VEC(uint64_t) ips;
	VEC(struct name_stack) stacks;
	VEC(struct name_text) texts;
	VEC(struct name_module) modules; /* by (tgid, start, gen) */
	VEC(struct name_target) targets;
	uint32_t followed_cnt;
	VEC(uint32_t) notes; /* indexes in texts */
	struct map by_stack, by_text;
	uint32_t host; /* 1 + index in texts */
};

void names_init(struct names *n, struct mem *mem, size_t limit);
void names_done(struct names *n);

/* Records in. 0, -EINVAL, -ENOMEM. What is over the limit is refused, counted, and 0. */
CC_NODISCARD int names_stack(struct names *n, const struct cc_rec_stack *r);
CC_NODISCARD int names_name(struct names *n, const struct cc_rec_name *r);
CC_NODISCARD int names_module(struct names *n, const struct cc_rec_module *r);
CC_NODISCARD int names_target(struct names *n, const struct cc_rec_target *r);

bool names_get_stack(const struct names *n, uint64_t key, struct engine_stack *ret);
bool names_get_mapping(const struct names *n, uint32_t i, struct engine_mapping *ret);
bool names_get_frame(const struct names *n, uint32_t tgid, uint32_t gen, uint64_t ip,
		     struct engine_frame *ret);

/* Writes the text of what it names, without the module after it; returns its length, 0: none is
 * known. @tgid 0 where the kind has none. */
size_t names_text(const struct names *n, uint32_t kind, uint64_t id, uint64_t id2, uint32_t tgid,
		  char *buf, size_t cap);

/* Is process @tgid traced to explain only? */
bool names_is_followed(const struct names *n, uint32_t tgid);

#endif
