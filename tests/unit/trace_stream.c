/* SPDX-License-Identifier: Apache-2.0 */
#include "trace_stream.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace.h"

uint64_t stream_random(uint64_t *state)
{
	*state += 0x9e3779b97f4a7c15ull;
	uint64_t z = *state;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

void temp_path(char path[64])
{
	strcpy(path, "/tmp/criticast-test-XXXXXX");
	int fd = mkstemp(path);

	cr_assert_geq(fd, 0);
	close(fd);
}

void stream_add(struct stream *s, const void *rec)
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

void add_storm(struct stream *s, uint32_t cnt, uint64_t seed)
{
	enum { THREADS = 16 };
	uint64_t in[THREADS];
	uint32_t seq[THREADS] = { 0 };
	uint64_t now = CC_S(1000);

	for (int i = 0; i < THREADS; i++)
		in[i] = now;
	for (uint32_t i = 0; i < cnt; i++) {
		uint32_t t = (uint32_t)(stream_random(&seed) % THREADS);
		uint32_t w = (t + 1 + (uint32_t)(stream_random(&seed) % 3)) % THREADS;
		struct cc_rec_episode e = { .h = { .size = sizeof(e), .kind = CC_REC_EPISODE } };

		now += 1000 + stream_random(&seed) % 2000;
		e.out = in[t] + 500 + stream_random(&seed) % 4000;
		e.wake = e.out + 1000 + stream_random(&seed) % 16000;
		e.h.ts = e.wake + 900 + stream_random(&seed) % 3000;
		e.h.cpu = (uint16_t)(stream_random(&seed) % 8 == 0);
		e.h.aux = 202;
		e.tid = 4000 + t;
		e.seq = ++seq[t];
		e.state = 1;
		e.waker_tid = 4000 + w;
		e.waker_tgid = 4000;
		e.key = 0x5000 + (stream_random(&seed) % 4) * 64;
		in[t] = e.h.ts;
		stream_add(s, &e);
	}
}

void add_random(struct stream *s, unsigned int kind, size_t size, uint64_t *seed)
{
	uint64_t rec[8192];

	for (size_t i = 0; i < size / 8; i++)
		rec[i] = stream_random(seed) % 4 ? stream_random(seed) >> stream_random(seed) % 64
						 : 0;
	rec[0] = (rec[0] & ~0xffffffull) | size | (uint64_t)kind << 16;
	stream_add(s, rec);
}

void add_tick(struct stream *s, uint64_t ts, unsigned int flags)
{
	struct cc_rec_tick t = { .h = { sizeof(t), CC_REC_TICK, (uint8_t)flags, 0, 0, ts },
				 .drained_to = ts };

	stream_add(s, &t);
}

void write_stream(const char *path, const struct stream *s)
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

size_t read_prefix(const char *path, const struct stream *s, bool *ret_damaged)
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

size_t slurp(const char *path, uint8_t **ret)
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

void spill(const char *path, const uint8_t *bytes, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	cr_assert_eq(write(fd, bytes, len), (ssize_t)len);
	close(fd);
}

void small_stream(struct stream *s)
{
	add_storm(s, 10, 3);
	add_tick(s, CC_S(1002), 0);
	add_storm(s, 8, 4);
	add_tick(s, CC_S(1004), 0);
	add_storm(s, 5, 5);
	add_tick(s, CC_S(1000), 1);
}
