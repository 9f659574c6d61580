/* SPDX-License-Identifier: Apache-2.0 */
/* A seek in a long recording: what later records lean on comes first. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format.h"
#include "map.h"
#include "trace.h"

TestSuite(trace_seek, .timeout = 60);

static uint64_t next_random(uint64_t *state) { return map_mix(*state += 0x9e3779b97f4a7c15ull); }

static uint64_t count_keys(const char *path)
{
	int fd = open(path, O_RDONLY);
	struct stat st;
	uint64_t cnt = 0;

	cr_assert(fd >= 0 && fstat(fd, &st) == 0);
	const char *map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0), *p = map;

	cr_assert_neq(map, MAP_FAILED);
	while ((p = memmem(p, (size_t)(map + st.st_size - p), "CKEY", 4)))
		cnt++, p++;
	munmap((void *)map, (size_t)st.st_size);
	close(fd);
	return cnt;
}

/* Without what was told between the last key chunk and the place: names are missing then, in no
 * other order, and no record is from there on. Another reader of the file goes its own way. */
static void check_rough(struct trace_reader *r, uint32_t names, uint32_t between)
{
	struct trace_reader *other;
	const struct cc_rec *rec;
	size_t len;
	uint32_t missing = 0;

	cr_assert_eq(trace_reader_again(r, &other), 0);
	for (uint32_t at = 0; at < names; at += 3) {
		uint32_t cnt = 0, before = 0;
		uint64_t last = 0, ahead = trace_reader_ahead(other, CC_S(at), between / 2, false);
		bool begun = false;

		cr_assert_eq(trace_reader_seek_rough(other, CC_S(at), between / 2), 0);
		cr_assert_eq(trace_reader_next(r, &rec, &len), 0, "the first one stays at its end");
		while (trace_reader_next(other, &rec, &len) == 1) {
			begun |= rec->kind != CC_REC_NAME;
			if (rec->kind == CC_REC_NAME) {
				uint64_t id = ((const struct cc_rec_name *)(const void *)rec)->id;

				cr_assert(!cnt || id > last);
				last = id;
				cnt++;
				missing += begun && id < at;
			}
			before += rec->kind == CC_REC_EPISODE && rec->ts < CC_S(at);
		}
		cr_expect_eq(last, names - 1);
		cr_expect_leq(cnt, names);
		cr_expect_leq(before, ahead + between / 2, "%u", at);
		cr_expect_geq(ahead, at ? between / 2 - 8192 : 0);
		cr_expect_leq(ahead, between / 2);
		missing += names - cnt;
	}
	cr_expect_gt(missing, 0, "some lie between key chunks and the place");
	trace_reader_free(other);
}

/* Names told now and then among episodes that do not compress: after a seek all names told before
 * it come, each once, then every record from there on. */
Test(trace_seek, gives_first_what_lasts)
{
	enum { NAMES = 20, BETWEEN = 20000 }; /* 12 MB: more than TRACE_KEY_EVERY */
	struct trace_writer *w;
	struct trace_reader *r;
	const struct cc_rec *rec;
	struct cc_err err;
	char path[64];
	size_t len;
	uint64_t seed = 5, keys = 0;

	strcpy(path, "/tmp/criticast-seek-XXXXXX");
	close(mkstemp(path));
	cr_assert_eq(trace_writer_open(path, &err, &w), 0);
	for (uint32_t i = 0; i < NAMES; i++) {
		struct cc_rec_name n = {
			.h = { sizeof(n), CC_REC_NAME, 0, 0, CC_NAME_FILE, CC_S(i) }, .id = i
		};

		cr_assert_eq(trace_writer_put(w, &n.h, sizeof(n)), 0);
		for (int j = 0; j < BETWEEN; j++) {
			struct cc_rec_episode e = { .h = { sizeof(e), CC_REC_EPISODE, 0, 0, 0,
							   CC_S(i) + j } };

			e.tid = (uint32_t)next_random(&seed);
			e.out = next_random(&seed) >> 3;
			e.lost = next_random(&seed);
			cr_assert_eq(trace_writer_put(w, &e.h, sizeof(e)), 0);
		}
		struct cc_rec_tick t = { .h = { sizeof(t), CC_REC_TICK, 0, 0, 0,
						CC_S(i) + BETWEEN },
					 .drained_to = CC_S(i) };

		cr_assert_eq(trace_writer_put(w, &t.h, sizeof(t)), 0);
	}
	cr_assert_eq(trace_writer_close(w), 0);
	keys = count_keys(path);
	cr_assert_eq(trace_reader_open(path, &err, &r), 0);
	for (uint32_t at = 0; at < NAMES; at += 6) {
		uint32_t names = 0, episodes = 0, first = NAMES;
		bool late = false;

		cr_assert_eq(trace_reader_seek(r, CC_S(at), BETWEEN / 2, false), 0);
		while (trace_reader_next(r, &rec, &len) == 1) {
			const struct cc_rec_name *n = (const void *)rec;

			if (rec->kind == CC_REC_NAME) {
				cr_assert_eq(n->id, names, "name %llu came as number %u",
					     (unsigned long long)n->id, names);
				names++;
			}
			late |= rec->kind == CC_REC_EPISODE;
			episodes += rec->kind == CC_REC_EPISODE;
			if (rec->kind == CC_REC_EPISODE && first == NAMES)
				first = (uint32_t)(rec->ts / CC_S(1));
		}
		cr_expect(late);
		cr_expect_eq(names, NAMES);
		cr_expect(first <= at && first + 2 >= at, "from %u for %u", first, at);
		cr_expect_geq(episodes, (NAMES - at) * BETWEEN);
		cr_expect_leq(episodes, (NAMES - at + 1) * BETWEEN + BETWEEN / 2);
	}
	check_rough(r, NAMES, BETWEEN);
	trace_reader_free(r);
	cr_expect_gt(keys, 0, "the file is too small to have key chunks");
	unlink(path);
}
