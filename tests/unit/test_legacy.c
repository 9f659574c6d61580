/* SPDX-License-Identifier: Apache-2.0 */
/* Versions 1 and 2: JSON lines to records, and the prototype's own fixture told right. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine.h"
#include "paths.h"
#include "trace.h"

#define HEAD1                                                              \
	"{\"version\":1,\"tgid\":100,\"min_block_ns\":0,\"sample_mod\":1," \
	"\"started_utc\":\"2024-05-01T12:00:00Z\",\"ktime_base_ns\":100,"  \
	"\"wall_base_utc\":\"2024-05-01T12:00:00.000000100Z\"}\n"
#define HEAD2                                                                       \
	"{\"magic\":\"CRTC\",\"version\":2,\"endianness\":\"little\",\"tgid\":100," \
	"\"ktime_base_ns\":0,\"struct_event_version\":1}\n"
/* task 10 blocked [200,300) ended by task 20, which was blocked [300,500) ended by task 30 */
#define EVENTS                                                                                 \
	"{\"TsNs\":500,\"Cpu\":0,\"Tgid\":100,\"Tid\":102,\"WakerTid\":103,\"BlockedNs\":200," \
	"\"StackID\":7,\"WakerStackID\":-1,\"Cookie\":1,\"TaskID\":20,\"WakerTaskID\":30,"     \
	"\"Aux\":0,\"Type\":1,\"WaitClass\":4,\"PrevState\":1,\"Confidence\":60}\n"            \
	"{\"TsNs\":300,\"Tid\":101,\"WakerTid\":102,\"BlockedNs\":100,\"Cookie\":1,"           \
	"\"TaskID\":10,\"WakerTaskID\":20,\"Type\":1,\"WaitClass\":4}\n"                       \
	"{\"TsNs\":310,\"Tid\":101,\"Type\":7}\n"

struct records {
	uint32_t kinds[CC_REC_KIND_CNT];
	struct cc_rec_episode episode[8];
	struct cc_rec_extra extra;
	struct cc_rec_tick tick;
	char notes[512];
	struct engine *e;
	struct cc_rec_stack stack; /* without its addresses */
};

static int take(void *ctx, const struct cc_rec *rec, size_t len)
{
	struct records *r = ctx;

	cr_assert_eq(rec->size, len);
	if (rec->kind == CC_REC_EPISODE && r->kinds[CC_REC_EPISODE] < 8)
		memcpy(&r->episode[r->kinds[CC_REC_EPISODE]], rec, sizeof(r->episode[0]));
	if (rec->kind == CC_REC_EXTRA)
		memcpy(&r->extra, rec, sizeof(r->extra));
	if (rec->kind == CC_REC_STACK)
		memcpy(&r->stack, rec, sizeof(r->stack));
	if (rec->kind == CC_REC_TICK)
		memcpy(&r->tick, rec, sizeof(r->tick));
	if (rec->kind == CC_REC_NAME) {
		const struct cc_rec_name *n = (const struct cc_rec_name *)rec;

		strncat(r->notes, n->text,
			CC_MIN(n->len[0], sizeof(r->notes) - strlen(r->notes) - 1));
	}
	r->kinds[rec->kind]++;
	return r->e ? engine_feed(r->e, rec, len) : 0;
}

/* Returns what trace_source_new() did; the records of a file with @text in @r. */
static int read_text(const char *text, size_t len, struct records *r, struct cc_err *err)
{
	char path[] = "/tmp/criticast-test-XXXXXX";
	int fd = mkstemp(path);
	struct cc_source *src;

	cr_assert_eq(write(fd, text, len), (ssize_t)len);
	close(fd);
	int code = trace_source_new(path, err, &src);

	unlink(path);
	if (code)
		return code;
	int n;

	while ((n = src->ops->poll(src, 0, take, r)) > 0)
		;
	cr_expect_eq(n, -ENODATA);
	cr_expect_null(trace_source_info(src));
	cc_source_free(src);
	return 0;
}

Test(legacy, version_1)
{
	struct records r = { 0 };
	struct cc_err err;

	cr_assert_eq(read_text(HEAD1 EVENTS, strlen(HEAD1 EVENTS), &r, &err), 0, "%s", err.msg);
	cr_expect_eq(r.kinds[CC_REC_EPISODE], 2);
	cr_expect_eq(r.kinds[CC_REC_TARGET], 1);
	cr_expect_eq(r.kinds[CC_REC_OPTION], 2);
	cr_expect_eq(r.episode[0].tid, 10, "in order of time, by goroutine");
	cr_expect_eq(r.episode[0].out, 200);
	cr_expect_eq(r.episode[0].h.ts, 300);
	cr_expect_eq(r.episode[0].wake, 300);
	cr_expect_eq(r.episode[0].waker_tid, 20);
	cr_expect_eq(r.episode[0].seq, 1);
	cr_expect_eq((int16_t)r.episode[0].h.aux, 45);
	cr_expect_eq(r.episode[1].tid, 20);
	cr_expect_eq(r.episode[1].out, 300);
	cr_expect_eq(r.kinds[CC_REC_EXTRA], 1, "only what has a stack needs one");
	cr_expect_eq(r.extra.tid, 20);
	cr_expect_neq(r.extra.ustack, 0);
	cr_expect_eq(r.extra.waker_ustack, 0);
	cr_expect_eq(r.tick.h.ts, 500);
	cr_expect_eq(r.tick.h.flags, 1);
	cr_expect_eq(r.tick.realtime_ns, 1714564800000000500ull);
	cr_expect_not_null(strstr(r.notes, "version 1 file: 2 waits; 1 other events"), "%s",
			   r.notes);
}

Test(legacy, version_2_with_stacks)
{
	static const char text[] = HEAD2 EVENTS
		"{\"_section\":\"stacks\",\"stacks\":{\"7\":[4096,8192],\"9\":[],\"x\":[1]}}\n"
		"{\"_section\":\"footer\",\"userspace_received\":3,\"bpf_ringbuf_drops\":0}\n";
	struct records r = { 0 };
	struct cc_err err;

	cr_assert_eq(read_text(text, sizeof(text) - 1, &r, &err), 0, "%s", err.msg);
	cr_expect_eq(r.kinds[CC_REC_EPISODE], 2);
	cr_expect_eq(r.kinds[CC_REC_STACK], 1);
	cr_expect_eq(r.stack.h.aux, 2);
	cr_expect_eq(r.stack.key, r.extra.ustack);
	cr_expect_eq(r.tick.realtime_ns, 0);
}

/* The prototype chained the two waits to 300 ns. Task 10 waited 100, and task 30 is not in it. */
Test(legacy, the_fixture_told_right)
{
	struct records r = { 0 };
	struct engine_opts o = { 0 };
	const struct cc_request *ten = NULL;
	struct cc_err err;
	size_t cnt;

	cr_assert_eq(engine_new(&o, &r.e), 0);
	cr_assert_eq(read_text(HEAD1 EVENTS, strlen(HEAD1 EVENTS), &r, &err), 0);
	cr_assert_eq(engine_finish(r.e), 0);
	const struct cc_request *const *all = engine_requests(r.e, &cnt);

	for (size_t i = 0; i < cnt; i++) {
		if (all[i]->id.kind == CC_REQID_TID && all[i]->id.id == 10)
			ten = all[i];
	}
	cr_assert_not_null(ten);
	cr_expect_eq(ten->end - ten->start, 100);
	cr_expect_eq(ten->path_sum_ns, 100);
	for (uint32_t i = 0; i < ten->path_cnt; i++) {
		cr_expect_neq(path_of(ten)[i].tid, 30);
		cr_expect_neq(path_of(ten)[i].waker_tid, 30);
	}
	engine_free(r.e);
}

Test(legacy, malformed_events_are_counted_and_a_cut_is_told)
{
	static const char text[] = HEAD1
		"{\"TsNs\":-5,\"Tid\":1,\"Type\":1}\n"
		"{\"TsNs\":1e300,\"Tid\":1,\"Type\":1}\n"
		"{\"TsNs\":5.5,\"Tid\":1,\"Type\":1}\n"
		"{\"TsNs\":\"5\",\"Tid\":1,\"Type\":1}\n"
		"{\"TsNs\":50,\"Tid\":4294967296,\"Type\":1}\n"
		"{\"TsNs\":50,\"Tid\":0,\"Type\":1}\n"
		"{\"TsNs\":50,\"Tid\":1,\"Type\":1,\"BlockedNs\":51}\n"
		"\n"
		"[1,2,3]\n"
		"{\"TsNs\":50,\"Tid\":1,\"Type\":1,\"BlockedNs\":50,\"WaitClass\":99}\n" EVENTS
		"{\"TsNs\":600,\"Ti";
	struct records r = { 0 };
	struct cc_err err;

	cr_assert_eq(read_text(text, sizeof(text) - 1, &r, &err), 0, "%s", err.msg);
	cr_expect_eq(r.kinds[CC_REC_EPISODE], 3);
	cr_expect_eq((int16_t)r.episode[0].h.aux, -2);
	cr_expect_not_null(strstr(r.notes, "2 other events not used, 7 malformed"), "%s", r.notes);
	cr_expect_not_null(strstr(r.notes, "line 15 cannot be read"), "%s", r.notes);
}

Test(legacy, what_is_not_one)
{
	static const char *const texts[] = { "{",
					     "{}",
					     "{\"version\":3}\n",
					     "{\"version\":\"1\"}\n",
					     "{\"version\":1",
					     "{\"tgid\":1}\n" };

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct records r = { 0 };
		struct cc_err err;

		cr_expect_eq(read_text(texts[i], strlen(texts[i]), &r, &err), -EBADMSG, "'%s'",
			     texts[i]);
		cr_expect_not_null(strstr(err.msg, "not a .criticast recording"), "%s", err.msg);
	}
}

Test(legacy, cut_at_every_byte_and_fuzzed)
{
	static const char text[] =
		HEAD2 EVENTS "{\"_section\":\"stacks\",\"stacks\":{\"7\":[4096]}}\n";
	char copy[sizeof(text)];
	uint64_t seed = 23;

	for (size_t cut = 0; cut < sizeof(text); cut++) {
		struct records r = { 0 };
		struct cc_err err;
		int code = read_text(text, cut, &r, &err);

		cr_assert_eq(code, cut < strlen(HEAD2) - 1 ? -EBADMSG : 0, "cut at %zu: %d", cut,
			     code);
	}
	for (int round = 0; round < 1000; round++) {
		struct records r = { 0 };
		struct cc_err err;

		memcpy(copy, text, sizeof(text));
		for (int i = 0; i < 3; i++) {
			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
			copy[(seed >> 33) % sizeof(text)] = (char)(seed >> 20);
		}
		int code = read_text(copy, sizeof(copy), &r, &err);

		cr_assert(code == 0 || code == -EBADMSG);
	}
}
