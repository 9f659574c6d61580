/* SPDX-License-Identifier: Apache-2.0 */
/* trace_stream: streams of records made up for tests of the .criticast file, and files of them.
 * What cannot be done ends the test. */
#ifndef TRACE_STREAM_H
#define TRACE_STREAM_H

#include "base.h"
#include "event.h"

uint64_t stream_random(uint64_t *state);

/* A new file; the caller unlinks it. */
void temp_path(char path[64]);

/* Records one after another in memory. All zero is an empty one; free .bytes. */
struct stream {
	uint8_t *bytes;
	size_t len, cap;
	uint32_t cnt;
};
void stream_add(struct stream *s, const void *rec);

/* A thread storm as a mutex/cond ping-pong gives it: short runs, short waits, few wakers. */
void add_storm(struct stream *s, uint32_t cnt, uint64_t seed);
/* One record of @kind with random content in every field that the stream does not need. */
void add_random(struct stream *s, unsigned int kind, size_t size, uint64_t *seed);
void add_tick(struct stream *s, uint64_t ts, unsigned int flags);
/* Three chunks: storm, a TICK after a second, more, another TICK, a tail. */
void small_stream(struct stream *s);

void write_stream(const char *path, const struct stream *s);
/* Bytes of the stream that the file gives back, which must be a prefix of it. */
size_t read_prefix(const char *path, const struct stream *s, bool *ret_damaged);

/* A file's bytes; the caller frees *ret. */
size_t slurp(const char *path, uint8_t **ret);
void spill(const char *path, const uint8_t *bytes, size_t len);

#endif
