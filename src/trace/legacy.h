/* SPDX-License-Identifier: Apache-2.0 */
/*
 * legacy: the JSON lines of versions 1 and 2 (an earlier prototype) as records of event.h.
 *
 * Each BLOCK_END becomes an EPISODE [TsNs - BlockedNs, TsNs) of its goroutine (TaskID, when set) or
 * thread, ended by its waker. Wait classes become the x86-64 syscall they stand for; those of Go
 * (channels, mutexes, ...) have none and stay "blocked". Its cookies were guesses and are dropped.
 * Other events say nothing that a path may rest on; they are counted in a note.
 */
#ifndef CC_TRACE_LEGACY_H
#define CC_TRACE_LEGACY_H

#include "base.h"
#include "event.h"

struct legacy;

/* True for the first bytes of such a file. */
bool legacy_is(const void *bytes, size_t len);

/* Reads and converts all of it. Returns 0; or -errno with a line in @err (-EBADMSG: not of this
 * kind, or a line that is not JSON). Caller owns *ret. */
CC_NODISCARD int legacy_open(const char *path, struct cc_err *err, struct legacy **ret);
/* The same for an open file, which is taken also on failure; @path: for the line. */
CC_NODISCARD int legacy_open_fd(int fd, const char *path, struct cc_err *err, struct legacy **ret);
void legacy_free(struct legacy *l); /* NULL is a no-op */

/* Next record, borrowed until legacy_free(); NULL: no more. */
const struct cc_rec *legacy_next(struct legacy *l);

/* What is wrong with the file: NULL, or from which line on it cannot be read. */
const char *legacy_damage(const struct legacy *l);

#endif
