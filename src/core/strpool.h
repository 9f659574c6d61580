/* SPDX-License-Identifier: Apache-2.0 */
/* strpool: strings of a snapshot, each once, sanitized, in one block that the snapshot takes. */
#ifndef CC_STRPOOL_H
#define CC_STRPOOL_H

#include "base.h"

#define STRPOOL_TEXT_MAX 512 /* longer text is cut */

struct strpool {
	char *bytes; /* [0] is "" */
	uint32_t len, cap;
	uint32_t *slots; /* offsets by hash; 0: free */
	uint32_t mask, cnt;
	int err; /* sticky: -ENOMEM; strpool_add() gives 0 ("") from then on */
};

void strpool_init(struct strpool *p); /* allocates nothing */
void strpool_done(struct strpool *p); /* also after strpool_take() */

/* Offset of the sanitized text in bytes; 0 for "" and on -ENOMEM, which stays in err. */
uint32_t strpool_add(struct strpool *p, const char *text, size_t len);
CC_PRINTF(2, 3) uint32_t strpool_addf(struct strpool *p, const char *fmt, ...);

/* A string by its offset, borrowed until the next add. */
const char *strpool_str(const struct strpool *p, uint32_t off);

/* Moves the block out to the caller (free()); the pool is empty after. NULL on -ENOMEM. */
char *strpool_take(struct strpool *p, uint32_t *ret_len);

#endif
