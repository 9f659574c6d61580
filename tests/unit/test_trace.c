/* SPDX-License-Identifier: Apache-2.0 */
/* The .criticast file: exact round trips, cuts at every byte, flipped bits, hostile bytes. */
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
#include "trace.h"

TestSuite(trace, .timeout = 120);

static uint64_t next_random(uint64_t *state)
{
	*state += 0x9e3779b97f4a7c15ull;
	uint64_t z = *state;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static void temp_path(char path[64])
{
	strcpy(path, "/tmp/criticast-test-XXXXXX");
	int fd = mkstemp(path);

	cr_assert_geq(fd, 0);
	close(fd);
}

/* Records one after another in memory. */
struct stream {
	uint8_t *bytes;
	size_t len, cap;
	uint32_t cnt;
};

static void stream_add(struct stream *s, const void *rec)
{
	size_t size = ((const struct cc_rec *)rec)->size;

	if (s->len + size > s->cap) {
		s->cap = 2 * s->cap + size;
		s->bytes = realloc(s->bytes, s->cap);
		cr_assert_not_null(s->bytes);
	}
	memcpy(s->bytes + s->len, rec, size);
	s->len += size;
	s->cnt++;
}

/* A thread storm as a mutex/cond ping-pong gives it: short runs, short waits, few wakers. */
static void add_storm(struct stream *s, uint32_t cnt, uint64_t seed)
{
	enum { THREADS = 16 };
	cc_ns in[THREADS];
	uint32_t seq[THREADS] = { 0 };
	cc_ns now = CC_S(1000);

	for (int i = 0; i < THREADS; i++)
		in[i] = now;
	for (uint32_t i = 0; i < cnt; i++) {
		uint32_t t = (uint32_t)(next_random(&seed) % THREADS);
		uint32_t w = (t + 1 + (uint32_t)(next_random(&seed) % 3)) % THREADS;
		struct cc_rec_episode e = { .h = { .size = sizeof(e), .kind = CC_REC_EPISODE } };

		now += 1000 + next_random(&seed) % 2000;
		e.out = in[t] + 500 + next_random(&seed) % 4000;
		e.wake = e.out + 1000 + next_random(&seed) % 16000;
		e.h.ts = e.wake + 900 + next_random(&seed) % 3000;
		e.h.cpu = (uint16_t)(next_random(&seed) % 8 == 0);
		e.h.aux = 202;
		e.tid = 4000 + t;
		e.seq = ++seq[t];
		e.state = 1;
		e.waker_tid = 4000 + w;
		e.waker_tgid = 4000;
		e.key = 0x5000 + (next_random(&seed) % 4) * 64;
		in[t] = e.h.ts;
		stream_add(s, &e);
	}
}

/* One record of @kind with random content in every field that the stream does not need. */
static void add_random(struct stream *s, unsigned int kind, size_t size, uint64_t *seed)
{
	uint64_t rec[8192];

	for (size_t i = 0; i < size / 8; i++)
		rec[i] = next_random(seed) % 4 ? next_random(seed) >> next_random(seed) % 64 : 0;
	rec[0] = (rec[0] & ~0xffffffull) | size | (uint64_t)kind << 16;
	stream_add(s, rec);
}

static void add_tick(struct stream *s, cc_ns ts, unsigned int flags)
{
	struct cc_rec_tick t = { .h = { sizeof(t), CC_REC_TICK, (uint8_t)flags, 0, 0, ts },
				 .drained_to = ts };

	stream_add(s, &t);
}

static void write_stream(const char *path, const struct stream *s)
{
	struct trace_writer *w;
	struct cc_err err;

	cr_assert_eq(trace_writer_open(path, &err, &w), 0, "%s", err.msg);
	for (size_t off = 0; off < s->len;) {
		const struct cc_rec *r = (const struct cc_rec *)(s->bytes + off);

		cr_assert_eq(trace_writer_put(w, r, r->size), 0);
		off += r->size;
	}
	cr_assert_eq(trace_writer_close(w), 0);
}

/* Bytes of the stream that the file gives back, which must be a prefix of it. */
static size_t read_prefix(const char *path, const struct stream *s, bool *ret_damaged)
{
	struct trace_reader *r;
	const struct cc_rec *rec;
	struct cc_err err;
	size_t off = 0, len;
	int n;

	cr_assert_eq(trace_reader_open(path, &err, &r), 0, "%s", err.msg);
	while ((n = trace_reader_next(r, &rec, &len)) == 1) {
		cr_assert_leq(off + len, s->len);
		cr_assert_eq(memcmp(rec, s->bytes + off, len), 0, "record at %zu differs", off);
		off += len;
	}
	cr_assert_eq(n, 0);
	*ret_damaged = trace_reader_damage(r) != NULL;
	trace_reader_free(r);
	return off;
}

static size_t slurp(const char *path, uint8_t **ret)
{
	FILE *f = fopen(path, "rb");

	cr_assert_not_null(f);
	fseek(f, 0, SEEK_END);
	size_t len = (size_t)ftell(f);

	rewind(f);
	*ret = malloc(len + 1);
	cr_assert_eq(fread(*ret, 1, len, f), len);
	fclose(f);
	return len;
}

static void spill(const char *path, const uint8_t *bytes, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	cr_assert_eq(write(fd, bytes, len), (ssize_t)len);
	close(fd);
}

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

/* A small file of three chunks: storm, a TICK after a second, more, another TICK, a tail. */
static void small_stream(struct stream *s)
{
	add_storm(s, 10, 3);
	add_tick(s, CC_S(1002), 0);
	add_storm(s, 8, 4);
	add_tick(s, CC_S(1004), 0);
	add_storm(s, 5, 5);
	add_tick(s, CC_S(1000), 1);
}

Test(trace, cut_at_every_byte)
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
		off += sizeof(h) + h.zip_len;
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
	struct trace_chunk_head h;
	size_t raw = 0;

	for (size_t off = sizeof(struct trace_head); off + sizeof(h) <= len;) {
		memcpy(&h, file + off, sizeof(h));
		off += sizeof(h) + h.zip_len;
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
Test(trace, cut_at_200_random_bytes)
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
			size_t cut = 16 + next_random(&seed) % (len - 16);

			spill(path, file, cut);
			cr_assert_eq(read_prefix(path, &s, &damaged), whole_before(file, len, cut),
				     "cut at %zu of %zu", cut, len);
			cr_assert(damaged, "cut at %zu of %zu is not told", cut, len);
		}
		gzip_to(path, file, len);
		len = slurp(path, &packed);
		for (int i = 0; i < (large ? ZIPPED / 10 : ZIPPED); i++) {
			size_t cut = len / 4 + next_random(&seed) % (len * 3 / 4);

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

Test(trace, flipped_bits_never_give_wrong_records)
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

/* Good encodings with some bytes changed: a CRC proves only that somebody computed it. */
Test(trace, hostile_bytes_behind_a_good_crc)
{
	enum { CAP = 65536, ROUNDS = 30000 };
	struct codec *c = malloc(sizeof(*c));
	uint64_t *out = malloc(CAP), seed = 99, good = 0, bad = 0;
	uint8_t in[8192];

	for (int round = 0; round < ROUNDS; round++) {
		struct stream s = { 0 };
		size_t len = 0;

		add_storm(&s, 4, next_random(&seed));
		for (int i = 0; i < 4; i++)
			add_random(&s, 2 + next_random(&seed) % 80,
				   16 + 8 * (next_random(&seed) % 40), &seed);
		codec_reset(c);
		for (size_t off = 0; off < s.len; off += ((struct cc_rec *)(s.bytes + off))->size)
			len += codec_put(c, (struct cc_rec *)(s.bytes + off), in + len);
		free(s.bytes);
		for (uint64_t n = next_random(&seed) % 4; n > 0; n--)
			in[next_random(&seed) % len] = (uint8_t)next_random(&seed);
		codec_reset(c);
		for (const uint8_t *p = in; p < in + len;) {
			int n = codec_get(c, &p, in + len, out, CAP);

			cr_assert_leq((uintptr_t)p, (uintptr_t)(in + len));
			if (n < 0) {
				bad++;
				break;
			}
			cr_assert_eq(n, ((struct cc_rec *)out)->size);
			cr_assert(codec_can((struct cc_rec *)out, (size_t)n));
			good++;
		}
	}
	cr_expect_gt(good, ROUNDS);
	cr_expect_gt(bad, ROUNDS / 10);
	free(out);
	free(c);
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
	struct trace_head h = { TRACE_MAGIC, 4, TRACE_LITTLE, 0, 1, 16 };

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

/* A full disk, made by a limit on file size: the same path as ENOSPC, without a mount. */
Test(trace, full_disk_keeps_whole_chunks)
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
