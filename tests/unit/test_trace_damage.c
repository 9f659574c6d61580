/* SPDX-License-Identifier: Apache-2.0 */
/* Damaged .criticast files: cuts at every byte, flipped bits, a full disk. All whole chunks come
 * back. */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zlib.h>

#include "format.h"
#include "trace.h"
#include "trace_stream.h"

TestSuite(trace_damage, .timeout = 120);

Test(trace_damage, cut_at_every_byte)
{
	struct stream s = { 0 };
	char path[64];
	uint8_t *file;
	bool damaged;
	size_t chunk_end[4] = { 0 }, chunk_raw[4] = { 0 }, chunks = 0, off, raw = 0;

	temp_path(path);
	small_stream(&s);
	write_stream(path, &s);
	size_t len = slurp(path, &file);

	for (off = sizeof(struct trace_head);;) {
		struct trace_chunk_head h;

		memcpy(&h, file + off, sizeof(h));
		if (h.magic != TRACE_CHUNK_MAGIC)
			break;
		off += sizeof(h) + trace_body_len(&h);
		raw += h.raw_len;
		cr_assert_lt(chunks, 3);
		chunk_end[chunks] = off;
		chunk_raw[chunks++] = raw;
	}
	cr_assert_eq(chunks, 3);
	cr_assert_eq(raw, s.len);
	for (size_t cut = sizeof(struct trace_head); cut < len; cut++) {
		size_t want = 0;

		for (size_t i = 0; i < chunks && chunk_end[i] <= cut; i++)
			want = chunk_raw[i];
		spill(path, file, cut);
		cr_assert_eq(read_prefix(path, &s, &damaged), want, "cut at %zu of %zu", cut, len);
		cr_assert(damaged, "cut at %zu of %zu is not told", cut, len);
	}
	for (size_t cut = 0; cut < sizeof(struct trace_head); cut++) {
		struct trace_reader *r;
		struct cc_err err;

		spill(path, file, cut);
		cr_assert_eq(trace_reader_open(path, &err, &r), -EBADMSG, "cut at %zu", cut);
		cr_assert_gt(strlen(err.msg), 0);
	}
	unlink(path);
	free(file);
	free(s.bytes);
}

/* Bytes of records in the chunks of @file that are whole before @cut. */
static size_t whole_before(const uint8_t *file, size_t len, size_t cut)
{
	size_t raw = 0, head_len = trace_chunk_head_len(((const struct trace_head *)file)->version);
	struct trace_chunk_head h = { 0 };

	for (size_t off = sizeof(struct trace_head); off + head_len <= len;) {
		memcpy(&h, file + off, head_len);
		off += head_len + trace_body_len(&h);
		if ((h.magic != TRACE_CHUNK_MAGIC && h.magic != TRACE_KEY_MAGIC) || off > cut)
			break;
		raw += h.magic == TRACE_CHUNK_MAGIC ? h.raw_len : 0;
	}
	return raw;
}

static void gzip_to(const char *path, const uint8_t *bytes, size_t len)
{
	gzFile gz = gzopen(path, "wb6");

	cr_assert_not_null(gz);
	cr_assert_eq(gzwrite(gz, bytes, (unsigned int)len), (int)len);
	cr_assert_eq(gzclose(gz), Z_OK);
}

/* A recording of a live server, with every kind of record there is, and one long enough to have key
 * chunks: all whole chunks come back, byte by byte, nothing else, and the cut is told. */
Test(trace_damage, cut_at_200_random_bytes)
{
	static const char demo[] = CC_SRC_DIR "/testdata/demo.criticast";
	enum { CUTS = 200, ZIPPED = 40 };
	uint64_t seed = 200;
	char path[64];

	temp_path(path);
	for (int large = 0; large < 2; large++) {
		struct stream s = { 0 };
		struct trace_reader *r;
		const struct cc_rec *rec;
		struct cc_err err;
		uint8_t *file, *packed;
		size_t len, got = 0;
		bool damaged;

		if (large) {
			for (int i = 0; i < 30; i++) {
				for (int k = 0; k < 10000; k++)
					add_random(&s, CC_REC_EPISODE, 64, &seed);
				add_random(&s, CC_REC_TASK, 72, &seed);
			}
			write_stream(path, &s);
		} else {
			cr_assert_eq(trace_reader_open(demo, &err, &r), 0, "%s", err.msg);
			while (trace_reader_next(r, &rec, &len) == 1)
				stream_add(&s, rec);
			trace_reader_free(r);
		}
		len = slurp(large ? path : demo, &file);
		cr_assert(!large || memmem(file, len, "CKEY", 4), "too small for key chunks");
		for (int i = 0; i < (large ? CUTS / 10 : CUTS); i++) {
			size_t cut = 16 + stream_random(&seed) % (len - 16);

			spill(path, file, cut);
			cr_assert_eq(read_prefix(path, &s, &damaged), whole_before(file, len, cut),
				     "cut at %zu of %zu", cut, len);
			cr_assert(damaged, "cut at %zu of %zu is not told", cut, len);
		}
		gzip_to(path, file, len);
		len = slurp(path, &packed);
		for (int i = 0; i < (large ? ZIPPED / 10 : ZIPPED); i++) {
			size_t cut = len / 4 + stream_random(&seed) % (len * 3 / 4);

			spill(path, packed, cut);
			size_t n = read_prefix(path, &s, &damaged);

			cr_assert(damaged || n == s.len, "gzip cut at %zu of %zu", cut, len);
			got += n > 0;
		}
		cr_expect_gt(got, 0);
		free(file);
		free(packed);
		free(s.bytes);
	}
	unlink(path);
}

Test(trace_damage, flipped_bits_never_give_wrong_records)
{
	struct stream s = { 0 };
	char path[64];
	uint8_t *file;
	size_t told = 0, total = 0;

	temp_path(path);
	small_stream(&s);
	write_stream(path, &s);
	size_t len = slurp(path, &file);

	for (size_t bit = 0; bit < 8 * len; bit += 3) { /* every byte, some of its bits */
		struct trace_reader *r;
		struct cc_err err;
		bool damaged;

		file[bit / 8] ^= (uint8_t)(1 << bit % 8);
		spill(path, file, len);
		if (trace_reader_open(path, &err, &r) == 0) {
			trace_reader_free(r);
			size_t got = read_prefix(path, &s, &damaged);

			cr_assert(damaged || got == s.len, "bit %zu: silent loss", bit);
			told += damaged;
		} else {
			told++;
		}
		total++;
		file[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	cr_expect_gt(told, total / 2);
	unlink(path);
	free(file);
	free(s.bytes);
}

/* A full disk, made by a limit on file size: the same path as ENOSPC, without a mount. */
Test(trace_damage, full_disk_keeps_whole_chunks)
{
	struct stream s = { 0 };
	struct trace_writer *w;
	struct cc_err err;
	char path[64];
	bool damaged;
	int code = 0;

	temp_path(path);
	add_storm(&s, 60000, 11);
	signal(SIGXFSZ, SIG_IGN);
	cr_assert_eq(trace_writer_open(path, &err, &w), 0);
	struct rlimit lim = { 100000, 100000 };

	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &lim), 0);
	for (size_t off = 0; off < s.len; off += 64) {
		int n = trace_writer_put(w, (const struct cc_rec *)(s.bytes + off), 64);

		cr_assert(!code || n == code, "the first error stays");
		code = n;
	}
	cr_expect_eq(code, -EFBIG);
	cr_expect_eq(trace_writer_close(w), -EFBIG);
	size_t got = read_prefix(path, &s, &damaged);

	cr_expect_gt(got, 0);
	cr_expect_eq(got % TRACE_CHUNK_RAW, 0);
	cr_expect(damaged);
	unlink(path);
	free(s.bytes);
}
