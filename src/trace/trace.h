/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace: the .criticast file, version 4: the record stream of event.h in zlib chunks.
 *
 * What the stream says about itself (clock anchors, host, targets, options, names, mappings) are
 * records like all others; the head only says how to read them. Append-only: a file cut at any
 * byte gives all whole chunks before the cut. Files are hostile: every length is bounded and every
 * chunk has a CRC-32. Layout: format.h. Records: codec.h.
 */
#ifndef CC_TRACE_H
#define CC_TRACE_H

#include "base.h"
#include "event.h"
#include "source.h"

/* ---- writing ---- */

struct trace_writer; /* one thread at a time */

/* Creates or truncates @path (mode 0600: kernel addresses are in it). Returns 0; or -errno with a
 * line in @err. Caller owns *ret. */
CC_NODISCARD int trace_writer_open(const char *path, struct cc_err *err, struct trace_writer **ret);

/* Adds one record. A chunk goes to the file every 256 KiB of records, and at the first TICK a
 * second after the chunk's first record. Returns 0; -EINVAL for what cannot be in a file (a bad
 * size, a SNAP; nothing is added); -errno when the file cannot be written. That error stays: later
 * calls return it and write nothing, and the file ends after its last whole chunk. */
CC_NODISCARD int trace_writer_put(struct trace_writer *w, const struct cc_rec *rec, size_t len);

/* Bytes of the file so far; what is buffered is counted as it was coded, before zlib. */
uint64_t trace_writer_bytes(const struct trace_writer *w);

/* Writes what is left, index and totals, closes and frees. Returns 0 or the first error of all. */
CC_NODISCARD int trace_writer_close(struct trace_writer *w);

/* Frees without a closing: what is buffered is not written. NULL is a no-op. */
void trace_writer_free(struct trace_writer *w);

/* ---- reading ---- */

struct trace_reader; /* one thread at a time */

struct trace_info {   /* from the index; of a file without one, from its chunk heads */
	uint32_t abi; /* CC_ABI_VERSION of the writer */
	uint32_t chunk_cnt;
	uint64_t rec_cnt;
	uint64_t raw_bytes, file_bytes;
	cc_ns first_ns, last_ns; /* smallest and largest ts */
	bool complete;           /* was closed: has its index */
};

/* Returns 0; or -errno with a line in @err: -EBADMSG not a recording or another version. @path: a
 * file, a pipe or "-" for stdin, each may be gzip. */
CC_NODISCARD int trace_reader_open(const char *path, struct cc_err *err, struct trace_reader **ret);
/* The same for an open regular file, which is taken also on failure; @path: for the line. */
CC_NODISCARD int trace_reader_open_fd(int fd, const char *path, struct cc_err *err,
				      struct trace_reader **ret);
void trace_reader_free(struct trace_reader *r); /* NULL is a no-op */
const struct trace_info *trace_reader_info(const struct trace_reader *r);

/* Next record, borrowed until the next call. Returns 1; 0 at the end, also at the first damage
 * (see trace_reader_damage()); -EIO, -ENOMEM. */
CC_NODISCARD int trace_reader_next(struct trace_reader *r, const struct cc_rec **ret, size_t *len);

/* Goes to where at most @max_records lie before the chunk that holds @to (its last one, if @to is
 * later). From there all is given; before it what was told earlier and lasts: names, stacks, tasks,
 * options, from key chunks (format.h). Returns 0; 1 without a change, when @onward and reading on
 * from here takes no more records; -ENOENT for a file without chunks. */
CC_NODISCARD int trace_reader_seek(struct trace_reader *r, cc_ns to, uint64_t max_records,
				   bool onward);

/* The same at once, without all that was told long before: some names may be missing. */
CC_NODISCARD int trace_reader_seek_rough(struct trace_reader *r, cc_ns to, uint64_t max_records);

/* How many records a seek would give before those of the chunk that holds @to. */
uint64_t trace_reader_ahead(const struct trace_reader *r, cc_ns to, uint64_t max_records,
			    bool onward);

/* Another reader of the same file, at its start. Returns 0 or -errno. Caller owns *ret. */
CC_NODISCARD int trace_reader_again(const struct trace_reader *r, struct trace_reader **ret);

/* After the end: NULL if the file was whole, else what is wrong with it and from where on. */
const char *trace_reader_damage(const struct trace_reader *r);

/* ---- as a source ---- */

/* Opens @path ("-": stdin; gzip or not): a file of trace_reader_open(), the JSON lines of versions
 * 1 and 2 (legacy.h), or a scheduler trace of another tool (import.h). A poll gives the records up
 * to and including the next TICK. What is wrong with the file is told by a NAME record
 * (CC_NAME_NOTE) at the end. Returns 0; or -errno with a line in @err. Free with cc_source_free().
 */
CC_NODISCARD int trace_source_new(const char *path, struct cc_err *err, struct cc_source **ret);

/* As trace_reader_seek(); -EOPNOTSUPP for what has no trace_reader. */
CC_NODISCARD int trace_source_seek(struct cc_source *s, cc_ns to, uint64_t max_records,
				   bool onward);

/* As trace_reader_seek_rough(); -EOPNOTSUPP for what has no trace_reader. */
CC_NODISCARD int trace_source_seek_rough(struct cc_source *s, cc_ns to, uint64_t max_records);

/* Another source on the file of @s, at its start. Returns 0; -EOPNOTSUPP for what has no
 * trace_reader; -errno. Caller owns *ret. */
CC_NODISCARD int trace_source_again(const struct cc_source *s, struct cc_source **ret);

/* How many records the same seek would have to read before those at @to; 0 for what has no
 * trace_reader. */
uint64_t trace_source_ahead(const struct cc_source *s, cc_ns to, uint64_t max_records, bool onward);

/* What is wrong with the file of a source of trace_source_new(), NULL: nothing met so far. */
const char *trace_source_damage(const struct cc_source *s);

/* NULL for what has no trace_reader. */
const struct trace_info *trace_source_info(const struct cc_source *s);

#endif
