/* SPDX-License-Identifier: Apache-2.0 */
/* flight: a flight recorder: the last stretch of the stream is kept in memory and written when
 * something happened: SIGUSR1, Enter on the terminal, a request that was slower than a limit. */
#ifndef CC_FLIGHT_H
#define CC_FLIGHT_H

#include "collect.h"

struct flight;

struct flight_opts {
	cc_ns ring;      /* how much is kept, and how long after one write a slow request is not
			  * a reason for the next */
	cc_ns trigger;   /* 0: slow requests are no reason */
	const char *out; /* of the first file; then "out-2.criticast", ... */
	bool keys;       /* standard input is a terminal */
};

/* Blocks SIGUSR1 in this thread. Returns 0 or -errno; caller owns *ret. */
CC_NODISCARD int flight_new(const struct flight_opts *o, struct flight **ret);
void flight_free(struct flight *f); /* NULL is a no-op */

/* Every record of the stream. */
void flight_see(struct flight *f, const struct cc_rec *rec);

/* Between polls: looks at the signal and the terminal, and writes what is due: two TICKs after the
 * reason came, so that the paths of what ended then are complete. Returns 0 or -errno of writing.
 */
CC_NODISCARD int flight_turn(struct flight *f, struct collect *c);

/* The end: writes what a reason has come for. */
CC_NODISCARD int flight_end(struct flight *f, struct collect *c);

uint32_t flight_file_cnt(const struct flight *f);

/* The file that was written last, or could not be. */
const char *flight_path(const struct flight *f);

#endif
