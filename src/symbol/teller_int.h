/* SPDX-License-Identifier: Apache-2.0 */
/* teller_int: what the files of the teller share: teller.c tells code of processes, tell_kernel.c
 * the kernel's, tell_things.c what is waited for. */
#ifndef CC_TELLER_INT_H
#define CC_TELLER_INT_H

#include "teller.h"

#define NAME_MAX_ 256 /* of a function */

/* What a key in t->named is of; mixed into it. */
enum { TOLD_FRAME = 1, TOLD_ADDR, TOLD_FILE, TOLD_ADDR_NAME };

/* Returns 1 the first time it is asked for this thing, else 0; or -ENOMEM. */
int tell_first_time(struct teller *t, int what, uint64_t a, uint64_t b);

bool tell_was_told(const struct teller *t, int what, uint64_t a, uint64_t b);

/* A NAME record: @what is CC_NAME_*, @place the module or place. */
int tell_name(struct teller *t, uint16_t what, uint64_t id, uint64_t id2, uint32_t tgid,
	      const char *text, size_t len, const char *place, size_t place_len);
/* A MODULE record of @m with @path, and since when it is so. */
int tell_module(struct teller *t, const struct cc_rec_module *m, const char *path, uint32_t gen);

#endif
