/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codec: one record to and from fewer bytes, before zlib. Exact for every record of any content.
 * What came before within the chunk predicts: an EPISODE by the last one of its task, another
 * record by the last one of its kind. Bytes on disk: ABI, so none of it may change.
 *
 *   tag 0      an EPISODE of 64 bytes: see codec.c
 *   tag kind   size / 8 as varint; 2 bits per word: as predicted, small difference (zigzag varint),
 *              or the 8 bytes themselves; then those; then the record's tail as it is
 */
#ifndef CC_TRACE_CODEC_H
#define CC_TRACE_CODEC_H

#include "base.h"
#include "event.h"

#define CODEC_KINDS 64                              /* kinds with a predecessor; above: none */
#define CODEC_HEAD_BYTES 256                        /* predicted at most; the rest is copied */
#define CODEC_SLOTS 256                             /* tasks remembered */
#define CODEC_MAX(size) ((size) + (size) / 32 + 64) /* bytes that a record may need */
#define CODEC_PLAIN_MAX 24                          /* and so many of an EPISODE, if apart */
#define CODEC_PLAIN_ROOM (CODEC_PLAIN_MAX + 8)

struct codec {
	struct cc_rec_episode task[CODEC_SLOTS]; /* last EPISODE by hash of tid */
	uint32_t last_tid;
	uint64_t last_in;
	uint64_t prev[CODEC_KINDS][CODEC_HEAD_BYTES / 8];
};

void codec_reset(struct codec *c); /* at each chunk's start */

/* True for what a file can hold: whole words, at least a header, a kind that is for files. */
bool codec_can(const struct cc_rec *rec, size_t len);

/* Writes at most CODEC_MAX(rec->size) bytes. Returns the number. @rec must be one that can.
 * @plain: where bytes go that do not compress, CODEC_PLAIN_MAX at most (of CODEC_PLAIN_ROOM that
 * are written to), and *plain is moved behind them; NULL: they are among the others. */
size_t codec_put(struct codec *c, const struct cc_rec *rec, uint8_t *out, uint8_t **plain);

struct codec_in { /* what is left to read */
	const uint8_t *p, *end;
	const uint8_t *plain, *plain_end; /* NULL: written without */
};

/* Reads one record. Sets *ret to it: in @out of @cap bytes (8-aligned) or in @c, until the next
 * call. Returns its size and moves @in; or -EBADMSG, whatever the bytes are. */
CC_NODISCARD int codec_get(struct codec *c, struct codec_in *in, void *out, size_t cap,
			   const struct cc_rec **ret);

#endif
