/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <libdeflate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "codec.h"
#include "format.h"
#include "lasting.h"
#include "mem.h"
#include "trace.h"

#define CHUNK_NS CC_S(1) /* a quiet trace still reaches the file */

struct trace_writer {
	int fd;
	int err;      /* first error; nothing is written after it */
	uint64_t off; /* end of what was written whole */
	struct libdeflate_compressor *zip;
	struct trace_index_entry *index;
	uint32_t index_cnt, index_cap;
	struct trace_key *keys;
	uint32_t key_cnt, key_cap;
	uint64_t key_at, key_bytes; /* where the last run of key chunks ended; how long it was */
	struct mem mem;
	VEC(uint8_t) lasting;          /* what key chunks repeat */
	bool no_keys;                  /* it is too much */
	struct trace_chunk_head chunk; /* the open one: raw_len, enc_len, rec_cnt, times */
	struct codec codec;
	uint8_t enc[TRACE_ENC_MAX];
	uint8_t plain[TRACE_PLAIN_MAX + CODEC_PLAIN_ROOM];
	uint8_t out[sizeof(struct trace_chunk_head) + TRACE_ZIP_MAX + TRACE_PLAIN_MAX];
};

/* Writes all of it or, on an error, takes back the part that was, and remembers the error. */
static int write_all(struct trace_writer *w, const void *data, size_t len)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = write(w->fd, (const uint8_t *)data + done, len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			w->err = n < 0 ? -errno : -EIO;
			/* not for a pipe; readers stop at the torn chunk there anyhow */
			if (ftruncate(w->fd, (off_t)w->off) < 0)
				return w->err;
			return w->err;
		}
		done += (size_t)n;
	}
	w->off += len;
	return 0;
}

static int write_head(struct trace_writer *w)
{
	struct trace_head h = {
		.magic = TRACE_MAGIC,
		.version = TRACE_VERSION,
		.endian = TRACE_LITTLE,
		.abi = CC_ABI_VERSION,
		.head_len = sizeof(h),
	};

	return write_all(w, &h, sizeof(h));
}

static int set_err(struct cc_err *err, int code, const char *what, const char *path)
{
	err->pos = -1;
	snprintf(err->msg, sizeof(err->msg), "cannot %s %s: %s", what, path, strerror(-code));
	return code;
}

int trace_writer_open(const char *path, struct cc_err *err, struct trace_writer **ret)
{
	struct trace_writer *w = calloc(1, sizeof(*w));

	if (!w)
		return set_err(err, -ENOMEM, "record into", path);
	w->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0600);
	int code = w->fd < 0 ? -errno : 0;

	w->zip = libdeflate_alloc_compressor(1);
	if (!code && !w->zip)
		code = -ENOMEM;
	if (!code)
		code = write_head(w);
	if (code) {
		trace_writer_free(w);
		return set_err(err, code, "write", path);
	}
	*ret = w;
	return 0;
}

void trace_writer_free(struct trace_writer *w)
{
	if (!w)
		return;
	if (w->fd >= 0)
		close(w->fd);
	libdeflate_free_compressor(w->zip);
	free(w->index);
	free(w->keys);
	vec_done(&w->mem, &w->lasting);
	free(w);
}

static int index_add(struct trace_writer *w)
{
	if (w->index_cnt == w->index_cap) {
		uint32_t cap = w->index_cap ? 2 * w->index_cap : 64;
		void *more = realloc(w->index, cap * sizeof(*w->index));

		if (!more)
			return w->err = -ENOMEM;
		w->index = more;
		w->index_cap = cap;
	}
	w->index[w->index_cnt++] = (struct trace_index_entry){
		.off = w->off,
		.first_ns = w->chunk.first_ns,
		.last_ns = w->chunk.last_ns,
		.rec_cnt = w->chunk.rec_cnt,
		.raw_len = w->chunk.raw_len,
	};
	return 0;
}

static uint32_t crc_of(const void *magic_and_crc, size_t len)
{
	const uint8_t *p = magic_and_crc;

	return libdeflate_crc32(0, p + 8, len - 8);
}

static int flush_as(struct trace_writer *w, uint32_t magic)
{
	struct trace_chunk_head *h = (struct trace_chunk_head *)w->out;

	if (!w->chunk.rec_cnt)
		return 0;
	size_t zipped = libdeflate_zlib_compress(w->zip, w->enc, w->chunk.enc_len,
						 w->out + sizeof(*h), TRACE_ZIP_MAX);

	if (!zipped)
		return w->err = -EIO; /* the bound of the output buffer excludes this */
	w->chunk.magic = magic;
	w->chunk.zip_len = (uint32_t)zipped;
	*h = w->chunk;
	memcpy(w->out + sizeof(*h) + zipped, w->plain, h->plain_len);
	size_t len = sizeof(*h) + trace_body_len(h);

	h->crc = crc_of(w->out, len);
	if (magic == TRACE_CHUNK_MAGIC && index_add(w))
		return w->err;
	if (write_all(w, w->out, len)) {
		w->index_cnt -= magic == TRACE_CHUNK_MAGIC;
		return w->err;
	}
	memset(&w->chunk, 0, sizeof(w->chunk));
	return 0;
}

/* Adds a record to the open chunk. */
static void add_record(struct trace_writer *w, const struct cc_rec *rec)
{
	if (!w->chunk.rec_cnt) {
		codec_reset(&w->codec);
		w->chunk.first_ns = w->chunk.last_ns = rec->ts;
	}
	uint8_t *plain = w->plain + w->chunk.plain_len;

	w->chunk.enc_len += (uint32_t)codec_put(&w->codec, rec, w->enc + w->chunk.enc_len, &plain);
	w->chunk.plain_len = (uint32_t)(plain - w->plain);
	w->chunk.raw_len += rec->size;
	w->chunk.rec_cnt++;
	w->chunk.first_ns = CC_MIN(w->chunk.first_ns, rec->ts);
	w->chunk.last_ns = CC_MAX(w->chunk.last_ns, rec->ts);
}

/* ---- key chunks --------------------------------------------------------------------------- */

static void keep_lasting(struct trace_writer *w, const struct cc_rec *rec)
{
	if (!rec_is_lasting(rec->kind) || w->no_keys)
		return;
	if (w->lasting.cnt + rec->size > TRACE_KEY_RAW_MAX ||
	    vec_reserve(&w->mem, &w->lasting, w->lasting.cnt + rec->size)) {
		w->no_keys = true; /* those there are stay good */
		vec_done(&w->mem, &w->lasting);
		return;
	}
	memcpy(w->lasting.p + w->lasting.cnt, rec, rec->size);
	w->lasting.cnt += rec->size;
}

static int key_add(struct trace_writer *w, uint64_t off, uint32_t cnt)
{
	if (w->key_cnt == w->key_cap) {
		uint32_t cap = w->key_cap ? 2 * w->key_cap : 16;
		void *more = realloc(w->keys, cap * sizeof(*w->keys));

		if (!more)
			return w->err = -ENOMEM;
		w->keys = more;
		w->key_cap = cap;
	}
	w->keys[w->key_cnt++] = (struct trace_key){ off, w->index_cnt, cnt };
	return 0;
}

/* After a chunk: repeats all that lasts, when it is time. */
static int write_keys(struct trace_writer *w)
{
	uint64_t start = w->off;
	uint32_t cnt = 0;

	if (w->no_keys || w->off - w->key_at < CC_MAX(TRACE_KEY_EVERY, 8 * w->key_bytes))
		return 0;
	for (size_t at = 0; at < w->lasting.cnt;) {
		const struct cc_rec *rec = (const struct cc_rec *)(w->lasting.p + at);

		at += rec->size;
		add_record(w, rec);
		if (w->chunk.raw_len < TRACE_CHUNK_RAW && at < w->lasting.cnt)
			continue;
		if (flush_as(w, TRACE_KEY_MAGIC))
			return w->err;
		cnt++;
	}
	w->key_at = w->off;
	w->key_bytes = w->off - start;
	return cnt ? key_add(w, start, cnt) : 0;
}

static int flush_chunk(struct trace_writer *w)
{
	int err = flush_as(w, TRACE_CHUNK_MAGIC);

	return err ? err : write_keys(w);
}

int trace_writer_put(struct trace_writer *w, const struct cc_rec *rec, size_t len)
{
	if (!codec_can(rec, len))
		return -EINVAL;
	if (w->err)
		return w->err;
	add_record(w, rec);
	keep_lasting(w, rec);
	if (w->chunk.raw_len >= TRACE_CHUNK_RAW ||
	    (rec->kind == CC_REC_TICK && w->chunk.last_ns - w->chunk.first_ns >= CHUNK_NS))
		return flush_chunk(w);
	return 0;
}

uint64_t trace_writer_bytes(const struct trace_writer *w)
{
	return w->off + w->chunk.enc_len + w->chunk.plain_len;
}

static int write_index(struct trace_writer *w)
{
	size_t entries = w->index_cnt * sizeof(*w->index), keys = w->key_cnt * sizeof(*w->keys);
	size_t len = sizeof(struct trace_index_head) + entries + keys;
	struct trace_tail tail = { .index_off = w->off, .magic = TRACE_TAIL_MAGIC };
	struct trace_index_head *h = calloc(1, len + sizeof(tail));

	if (!h)
		return w->err = -ENOMEM;
	h->magic = TRACE_INDEX_MAGIC;
	h->entry_cnt = w->index_cnt;
	h->key_cnt = w->key_cnt;
	for (uint32_t i = 0; i < w->index_cnt; i++) {
		h->rec_cnt += w->index[i].rec_cnt;
		h->raw_bytes += w->index[i].raw_len;
	}
	if (entries)
		memcpy(h + 1, w->index, entries);
	if (keys)
		memcpy((uint8_t *)(h + 1) + entries, w->keys, keys);
	h->crc = crc_of(h, len);
	memcpy((uint8_t *)h + len, &tail, sizeof(tail));
	int err = write_all(w, h, len + sizeof(tail));

	free(h);
	return err;
}

int trace_writer_close(struct trace_writer *w)
{
	int err = w->err;

	if (!err)
		err = flush_chunk(w);
	if (!err)
		err = write_index(w);
	/* a network file system may tell of a full disk only now */
	if (close(w->fd) < 0 && !err)
		err = -errno;
	w->fd = -1;
	trace_writer_free(w);
	return err;
}
