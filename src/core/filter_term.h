/* SPDX-License-Identifier: Apache-2.0 */
/* filter_term: a parsed filter, between filter.c that reads it and filter_match.c that applies it.
 */
#ifndef CC_FILTER_TERM_H
#define CC_FILTER_TERM_H

#include "filter.h"

#define FILTER_TERMS 64
#define FILTER_VALUE 128
#define KEY_CLASS_BASE FILTER_KEY_CNT /* keys from here on: time by wait class */

enum op { OP_EQ, OP_NE, OP_CONTAINS, OP_GT, OP_GE, OP_LT, OP_LE };

struct term {
	bool negated;
	bool starts_or; /* the first of an alternative */
	uint8_t op;
	uint16_t key;    /* enum filter_key, or KEY_CLASS_BASE + class */
	uint64_t lo, hi; /* the value as [lo, hi]; FILTER_WAIT: a set of classes in lo */
	struct cc_reqid id;
	char text[FILTER_VALUE];
};

struct filter {
	uint32_t cnt;
	struct term terms[FILTER_TERMS];
	char text[];
};
_Static_assert(WAIT_CLASS_CNT <= 64, "a set of classes is one word");

enum filter_type filter_key_type(unsigned int key); /* of a class key: FILTER_NS */

#endif
