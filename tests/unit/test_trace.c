/* SPDX-License-Identifier: Apache-2.0 */
/* The .criticast file: exact round trips, hostile bytes, seeks, sources. Damage: test_trace_damage.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "codec.h"
#include "format.h"
#include "raw_stack.h"
#include "trace.h"
#include "trace_stream.h"

TestSuite(trace, .timeout = 120);

Test(trace, all_kinds_round_trip)
{
	static const uint16_t sizes[CC_REC_KIND_CNT] = {
		[CC_REC_EPISODE] = 64,   [CC_REC_EXTRA] = 240,         [CC_REC_SOCKOP] = 88,
		[CC_REC_REQ] = 224,      [CC_REC_STACK] = 32 + 8 * 20, [CC_REC_SAMPLE] = 48,
		[CC_REC_TASK] = 72,      [CC_REC_OPEN_TASK] = 200,     [CC_REC_OPEN_REQ] = 224,
		[CC_REC_LOSS] = 48,      [CC_REC_TICK] = 48,           [CC_REC_MODULE] = 88 + 40,
		[CC_REC_NAME] = 40 + 24, [CC_REC_SHORT] = 40,          [CC_REC_TARGET] = 48,
		[CC_REC_OPTION] = 24,    [CC_REC_COUNTER] = 24,        [CC_REC_GO_EPISODE] = 88,
		[CC_REC_GO_TASK] = 56,   [CC_REC_GO_ON] = 32,          [CC_REC_GO_ITEM] = 56,
		[CC_REC_LISTEN] = 40,    [CC_REC_WAKE] = 32,
	};
	struct stream s = { 0 };
	uint64_t seed = 7;
	char path[64];
	bool damaged;

	temp_path(path);
	for (int round = 0; round < 200; round++) {
		for (unsigned int k = 1; k < CC_REC_KIND_CNT; k++) {
			cr_assert_neq(sizes[k], 0, "kind %u has no row here", k);
			add_random(&s, k, sizes[k], &seed);
		}
		/* kinds of a later version, longer and shorter records, the largest one */
		add_random(&s, CC_REC_KIND_CNT, 48, &seed);
		add_random(&s, 63, 512, &seed);
		add_random(&s, 64, 32, &seed);
		add_random(&s, 255, 24, &seed);
		add_random(&s, CC_REC_EPISODE, 72, &seed);
		add_random(&s, CC_REC_EPISODE, 56, &seed);
		add_random(&s, CC_REC_STACK, 16, &seed);
		if (round % 50 == 0)
			add_random(&s, CC_REC_NAME, 65528, &seed);
	}
	write_stream(path, &s);
	cr_expect_eq(read_prefix(path, &s, &damaged), s.len);
	cr_expect_not(damaged);
	unlink(path);
	free(s.bytes);
}

Test(trace, storm_is_small_and_whole)
{
	struct stream s = { 0 };
	struct trace_reader *r;
	struct cc_err err;
	char path[64];
	bool damaged;

	temp_path(path);
	add_storm(&s, 100000, 1);
	write_stream(path, &s);
	cr_expect_eq(read_prefix(path, &s, &damaged), s.len);
	cr_expect_not(damaged);
	cr_assert_eq(trace_reader_open(path, &err, &r), 0);
	const struct trace_info *info = trace_reader_info(r);

	cr_expect(info->complete);
	cr_expect_eq(info->rec_cnt, 100000);
	cr_expect_eq(info->raw_bytes, s.len);
	cr_expect_eq(info->abi, CC_ABI_VERSION);
	cr_expect_leq(info->file_bytes, 14 * 100000, "%f bytes per episode",
		      (double)info->file_bytes / 100000);
	trace_reader_free(r);
	unlink(path);
	free(s.bytes);
}

/* Records that are coded, with bytes apart or without. Returns the bytes of the others. */
static size_t code_some(struct codec *c, uint64_t *seed, uint8_t *out, uint8_t **plain)
{
	struct stream s = { 0 };
	size_t len = 0;

	add_storm(&s, 4, stream_random(seed));
	for (int i = 0; i < 4; i++)
		add_random(&s, 2 + stream_random(seed) % 80, 16 + 8 * (stream_random(seed) % 40),
			   seed);
	codec_reset(c);
	for (size_t off = 0; off < s.len; off += ((struct cc_rec *)(s.bytes + off))->size)
		len += codec_put(c, (struct cc_rec *)(s.bytes + off), out + len, plain);
	free(s.bytes);
	return len;
}

/* Good encodings with some bytes changed or cut: a CRC proves only that somebody computed it. */
Test(trace, hostile_bytes_behind_a_good_crc)
{
	enum { CAP = 65536, ROUNDS = 30000 };
	struct codec *c = malloc(sizeof(*c));
	uint64_t *out = malloc(CAP), seed = 99, good = 0, bad = 0, short_of_plain = 0;
	uint8_t in[8192], plain[512];

	for (int round = 0; round < ROUNDS; round++) {
		uint8_t *plain_end = plain;
		bool apart = round % 2, cut = false;
		size_t len = code_some(c, &seed, in, apart ? &plain_end : NULL);
		struct codec_in from = { .p = in, .end = in + len };

		for (uint64_t n = stream_random(&seed) % 4; n > 0; n--)
			in[stream_random(&seed) % len] = (uint8_t)stream_random(&seed);
		if (apart) {
			cut = stream_random(&seed) % 8 == 0;
			from.plain = plain;
			from.plain_end = cut ? plain_end - 1 : plain_end;
		}
		codec_reset(c);
		while (from.p < from.end) {
			const struct cc_rec *rec;
			int n = codec_get(c, &from, out, CAP, &rec);

			cr_assert_leq((uintptr_t)from.p, (uintptr_t)from.end);
			cr_assert_leq((uintptr_t)from.plain, (uintptr_t)from.plain_end);
			if (n < 0) {
				bad++;
				short_of_plain += cut;
				break;
			}
			cr_assert_eq(n, rec->size);
			cr_assert(codec_can(rec, (size_t)n));
			good++;
		}
	}
	cr_expect_gt(good, ROUNDS);
	cr_expect_gt(bad, ROUNDS / 10);
	cr_expect_gt(short_of_plain, ROUNDS / 100);
	free(out);
	free(c);
}

/* What was recorded before: the bundled recording is of version 3, and stays so. What its index
 * says there is comes out, and again when it is written anew. */
Test(trace, version_3_is_read)
{
	static const char demo[] = CC_SRC_DIR "/testdata/demo.criticast";
	struct stream s = { 0 };
	struct trace_reader *r;
	const struct cc_rec *rec;
	struct cc_err err;
	char path[64];
	uint8_t *file;
	bool damaged;
	size_t len;

	len = slurp(demo, &file);
	cr_assert_eq(((const struct trace_head *)file)->version, 3);
	free(file);
	cr_assert_eq(trace_reader_open(demo, &err, &r), 0, "%s", err.msg);
	while (trace_reader_next(r, &rec, &len) == 1)
		stream_add(&s, rec);
	cr_expect_null(trace_reader_damage(r));
	cr_expect(trace_reader_info(r)->complete);
	cr_expect_eq(trace_reader_info(r)->rec_cnt, s.cnt);
	cr_expect_eq(trace_reader_info(r)->raw_bytes, s.len);
	temp_path(path);
	write_stream(path, &s);
	cr_expect_eq(read_prefix(path, &s, &damaged), s.len);
	cr_expect_not(damaged);
	cr_expect_lt(slurp(path, &file), trace_reader_info(r)->file_bytes, "it grew");
	trace_reader_free(r);
	unlink(path);
	free(file);
	free(s.bytes);
}

/* A chunk whose CRC fits and that has fewer bytes apart than its records need. */
Test(trace, too_few_bytes_apart)
{
	struct stream s = { 0 };
	struct trace_chunk_head h;
	char path[64];
	uint8_t *file;
	bool damaged;

	temp_path(path);
	add_storm(&s, 100, 5);
	write_stream(path, &s);
	slurp(path, &file);
	uint8_t *at = file + sizeof(struct trace_head);

	memcpy(&h, at, sizeof(h));
	cr_assert_gt(h.plain_len, 100 * 3 * 2 - 1);
	h.plain_len--;
	memcpy(at, &h, sizeof(h));
	h.crc = (uint32_t)crc32(0, at + 8, (uInt)(sizeof(h) - 8 + trace_body_len(&h)));
	memcpy(at, &h, sizeof(h));
	spill(path, file, sizeof(struct trace_head) + sizeof(h) + trace_body_len(&h));
	cr_expect_eq(read_prefix(path, &s, &damaged), 99 * 64);
	cr_expect(damaged);
	unlink(path);
	free(file);
	free(s.bytes);
}

Test(trace, refuses_what_is_no_recording)
{
	static const char *const texts[] = { "", "CRTC",
					     "hello, this is some other file entirely\n" };
	struct trace_reader *r;
	struct cc_err err;
	char path[64];

	temp_path(path);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		spill(path, (const uint8_t *)texts[i], strlen(texts[i]));
		cr_expect_eq(trace_reader_open(path, &err, &r), -EBADMSG);
	}
	struct trace_head h = { TRACE_MAGIC, TRACE_VERSION + 1, TRACE_LITTLE, 0, 1, 16 };

	spill(path, (const uint8_t *)&h, sizeof(h));
	cr_expect_eq(trace_reader_open(path, &err, &r), -EBADMSG);
	cr_expect_not_null(strstr(err.msg, "newer version"));
	h.version = 3;
	h.endian = 2;
	spill(path, (const uint8_t *)&h, sizeof(h));
	cr_expect_eq(trace_reader_open(path, &err, &r), -EBADMSG);
	cr_expect_not_null(strstr(err.msg, "big-endian"));
	cr_expect_eq(trace_reader_open("/nonexistent/x", &err, &r), -ENOENT);
	cr_expect_eq(trace_reader_open("/tmp", &err, &r), -EISDIR);
	unlink(path);
}

Test(trace, writer_errors_are_one_and_stay)
{
	struct trace_writer *w;
	struct cc_err err;

	cr_expect_eq(trace_writer_open("/nonexistent/x", &err, &w), -ENOENT);
	cr_expect_not_null(strstr(err.msg, "/nonexistent/x"));
	/* the head is the first thing that does not fit */
	cr_expect_eq(trace_writer_open("/dev/full", &err, &w), -ENOSPC);
	cr_expect_not_null(strstr(err.msg, "No space left"));

	char path[64];

	temp_path(path);
	cr_assert_eq(trace_writer_open(path, &err, &w), 0);
	struct cc_rec_snap snap = { .h = { .size = sizeof(snap), .kind = CC_REC_SNAP } };
	struct cc_rec odd = { .size = 20, .kind = CC_REC_EPISODE };

	cr_expect_eq(trace_writer_put(w, &snap.h, sizeof(snap)), -EINVAL);
	cr_expect_eq(trace_writer_put(w, &odd, 20), -EINVAL);
	cr_expect_eq(trace_writer_put(w, &odd, 16), -EINVAL);
	cr_expect_eq(trace_writer_close(w), 0, "a refused record is no error of the file");
	unlink(path);
}

Test(trace, seek_by_time)
{
	struct stream s = { 0 };
	struct trace_reader *r;
	const struct cc_rec *rec;
	struct cc_err err;
	char path[64];
	size_t len;

	temp_path(path);
	add_tick(&s, CC_S(10), 0);
	add_tick(&s, CC_S(12), 0);
	add_tick(&s, CC_S(20), 0);
	add_tick(&s, CC_S(22), 0);
	write_stream(path, &s);
	cr_assert_eq(trace_reader_open(path, &err, &r), 0);
	cr_expect_eq(trace_reader_info(r)->chunk_cnt, 2);
	cr_expect_eq(trace_reader_info(r)->first_ns, CC_S(10));
	cr_expect_eq(trace_reader_info(r)->last_ns, CC_S(22));
	cr_assert_eq(trace_reader_seek(r, CC_S(13), 0, false), 0);
	cr_assert_eq(trace_reader_next(r, &rec, &len), 1);
	cr_expect_eq(rec->ts, CC_S(20));
	cr_assert_eq(trace_reader_seek(r, 0, 0, false), 0);
	cr_assert_eq(trace_reader_next(r, &rec, &len), 1);
	cr_expect_eq(rec->ts, CC_S(10));
	cr_expect_eq(trace_reader_seek(r, CC_S(13), 10, true), 1, "reading on is as near");
	cr_assert_eq(trace_reader_next(r, &rec, &len), 1);
	cr_expect_eq(rec->ts, CC_S(12));
	cr_assert_eq(trace_reader_seek(r, CC_S(99), 0, false), 0);
	cr_assert_eq(trace_reader_next(r, &rec, &len), 1);
	cr_expect_eq(rec->ts, CC_S(20), "beyond the end: its last chunk");
	trace_reader_free(r);
	unlink(path);
	free(s.bytes);
}

static int count_record(void *ctx, const struct cc_rec *rec, size_t len)
{
	struct stream *s = ctx;

	(void)len;
	stream_add(s, rec);
	return 0;
}

static int refuse(void *ctx, const struct cc_rec *rec, size_t len)
{
	(void)ctx;
	(void)rec;
	(void)len;
	return -ECANCELED;
}

Test(trace, source_stops_at_ticks_and_tells_the_cut)
{
	struct stream s = { 0 }, got = { 0 };
	struct cc_source *src;
	struct cc_err err;
	char path[64];
	uint8_t *file;

	temp_path(path);
	small_stream(&s);
	write_stream(path, &s);
	cr_assert_eq(trace_source_new(path, &err, &src), 0);
	cr_expect_eq(src->ops->poll(src, 0, count_record, &got), 11);
	cr_expect_eq(src->ops->poll(src, 0, refuse, NULL), -ECANCELED);
	cr_expect_eq(src->ops->poll(src, 0, count_record, &got), 8);
	cr_expect_eq(src->ops->poll(src, 0, count_record, &got), 6);
	cr_expect_eq(src->ops->poll(src, 0, count_record, &got), -ENODATA);
	cr_expect_null(trace_source_damage(src));
	cc_source_free(src);

	size_t len = slurp(path, &file);

	spill(path, file, len - 1);
	got.len = got.cnt = 0;
	cr_assert_eq(trace_source_new(path, &err, &src), 0);
	while (src->ops->poll(src, 0, count_record, &got) > 0)
		;
	cr_expect_eq(src->ops->poll(src, 0, count_record, &got), -ENODATA);
	cr_assert_eq(got.cnt, s.cnt + 1);
	const struct cc_rec_name *note = (const struct cc_rec_name *)(got.bytes + s.len);

	cr_expect_eq(note->h.kind, CC_REC_NAME);
	cr_expect_eq(note->h.aux, CC_NAME_NOTE);
	cr_expect_eq(note->len[0], strlen(trace_source_damage(src)));
	cr_expect_eq(memcmp(note->text, trace_source_damage(src), note->len[0]), 0);
	cc_source_free(src);
	unlink(path);
	free(file);
	free(s.bytes);
	free(got.bytes);
}
