/* SPDX-License-Identifier: Apache-2.0 */
/* analyze and export as commands: a recording in, text, JSON, Markdown, pprof, folded stacks out.
 */
#include <cjson/cJSON.h>
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "shop_stream.h"
#include "trace.h"

TestSuite(analyze, .timeout = 60);

static char trace[64], out[64], told[64];

static void make_temp(char *path)
{
	strcpy(path, "/tmp/criticast-test-XXXXXX");
	close(mkstemp(path));
}

static int put(void *ctx, const struct cc_rec *rec, size_t len)
{
	return trace_writer_put(ctx, rec, len);
}

/* The shop's recording in a file; stdout and stderr of this test's process in others. */
static void setup(void)
{
	struct trace_writer *w;
	struct cc_err err;

	make_temp(trace);
	make_temp(out);
	make_temp(told);
	cr_assert_eq(trace_writer_open(trace, &err, &w), 0);
	cr_assert_eq(shop_stream(put, w), 0);
	cr_assert_eq(trace_writer_close(w), 0);
}

static void teardown(void)
{
	unlink(trace);
	unlink(out);
	unlink(told);
}

static char *slurp(const char *path)
{
	FILE *f = fopen(path, "rb");
	char *text = calloc(1, 1 << 20);

	cr_assert(f && text);
	cr_assert_lt(fread(text, 1, (1 << 20) - 1, f), (1 << 20) - 1);
	fclose(f);
	return text;
}

#define RUN(cmd, ...)                                                            \
	({                                                                       \
		const char *argv_[] = { #cmd, __VA_ARGS__, NULL };               \
		cr_assert_not_null(freopen(out, "w", stdout));                   \
		cr_assert_not_null(freopen(told, "w", stderr));                  \
		int rc_ = cmd_##cmd((int)ARRAY_SIZE(argv_) - 1, (char **)argv_); \
		fflush(NULL);                                                    \
		rc_;                                                             \
	})

#define EXPECT_IN(path, text)                                                          \
	do {                                                                           \
		char *all_ = slurp(path);                                              \
		cr_expect_not_null(strstr(all_, text), "no '%s' in:\n%s", text, all_); \
		free(all_);                                                            \
	} while (0)

Test(analyze, text, .init = setup, .fini = teardown)
{
	cr_expect_eq(RUN(analyze, trace), CLI_OK);
	EXPECT_IN(told, "");
	EXPECT_IN(out, "target      nginx, pid 4242");
	EXPECT_IN(out, "requests    20 finished, 0 in flight\n");
	EXPECT_IN(out, "latency ms  p50 2.0  p95 102.0  p99 102.0  max 102.0\n");
	EXPECT_IN(out, "7f3a#20  102.0 ms  nginx/4245  confidence");
	EXPECT_IN(out,
		  "lock 100.0 of 102.0 ms (98%): cart_mutex held by worker/4249, itself in disk "
		  "fsync 90.0 ms -> the root cause is disk fsync");
	EXPECT_IN(out, "path 102.0 = latency 102.0 ms");
}

Test(analyze, one_request, .init = setup, .fini = teardown)
{
	cr_expect_eq(RUN(analyze, trace, "--request", "7f3a#19"), CLI_OK);
	EXPECT_IN(out, "7f3a#19  102.0 ms");
	EXPECT_IN(out, "__lll_lock_wait+0x2c");
	char *text = slurp(out);

	cr_expect_null(strstr(text, "7f3a#20"));
	free(text);
	cr_expect_eq(RUN(analyze, trace, "--request", "0x7f3a", "--top", "3"), CLI_OK);
	EXPECT_IN(out, "7f3a#18");
	cr_expect_eq(RUN(analyze, trace, "--request", "4245"), CLI_OK);
	EXPECT_IN(out, "7f3a#20");
	cr_expect_eq(RUN(analyze, trace, "--request", "7f3a#21"), CLI_FAILED);
	EXPECT_IN(told, "criticast: no request 7f3a#21 in ");
	cr_expect_eq(RUN(analyze, trace, "--request", "what"), CLI_USAGE);
	cr_expect_eq(RUN(analyze, trace, "--format", "xml"), CLI_USAGE);
	cr_expect_eq(RUN(analyze, trace, "--filter", "lat>"), CLI_USAGE);
	EXPECT_IN(told, "at character 5");
	cr_expect_eq(RUN(analyze, trace, "--min-confidence", "101"), CLI_USAGE);
	cr_expect_eq(RUN(analyze, "/nonexistent"), CLI_FAILED);
}

Test(analyze, json, .init = setup, .fini = teardown)
{
	cr_expect_eq(RUN(analyze, trace, "--format", "json", "--top", "2", "--filter", "wait=lock"),
		     CLI_OK);
	char *text = slurp(out);
	cJSON *o = cJSON_Parse(text);

	cr_assert_not_null(o);
	const cJSON *requests = cJSON_GetObjectItem(o, "requests");
	const cJSON *r = cJSON_GetArrayItem(requests, 0);

	cr_expect_eq(cJSON_GetArraySize(requests), 2);
	cr_expect_eq(cJSON_GetObjectItem(cJSON_GetObjectItem(o, "summary"), "requests")->valueint,
		     20);
	cr_expect_eq(cJSON_GetObjectItem(r, "latency_ns")->valuedouble, 102e6);
	cr_expect_eq(cJSON_GetObjectItem(r, "path_sum_ns")->valuedouble, 102e6);
	cr_expect_str_eq(
		cJSON_GetObjectItem(cJSON_GetObjectItem(r, "dominant"), "class")->valuestring,
		"lock");
	/* the depth-0 pieces partition [start, end) */
	double at = cJSON_GetObjectItem(r, "start_ns")->valuedouble;
	const cJSON *p;

	cJSON_ArrayForEach(p, cJSON_GetObjectItem(r, "path"))
	{
		if (cJSON_GetObjectItem(p, "depth")->valueint)
			continue;
		cr_expect_eq(cJSON_GetObjectItem(p, "start_ns")->valuedouble, at);
		at = cJSON_GetObjectItem(p, "end_ns")->valuedouble;
	}
	cr_expect_eq(at, cJSON_GetObjectItem(r, "end_ns")->valuedouble);
	cJSON_Delete(o);
	free(text);
}

Test(analyze, markdown_and_a_cut_file, .init = setup, .fini = teardown)
{
	cr_expect_eq(RUN(analyze, trace, "--format", "md", "--top", "1"), CLI_OK);
	EXPECT_IN(out, "## Request 7f3a\\#20: 102.0 ms");
	cr_assert_eq(truncate(trace, 3000), 0);
	int rc = RUN(analyze, trace);

	cr_expect_eq(rc, CLI_OK);
	EXPECT_IN(told, "criticast: ");
	EXPECT_IN(told, " all before it is shown");
	EXPECT_IN(out, "note        ");
}

Test(analyze, export, .init = setup, .fini = teardown)
{
	char pb[64], folded[64];

	make_temp(pb);
	make_temp(folded);
	cr_expect_eq(RUN(export, trace, "--pprof", pb, "--folded", folded, "--request", "7f3a#20"),
		     CLI_OK);
	EXPECT_IN(folded, "nginx/4245;cart_add;__lll_lock_wait;[lock: waits for worker/4249];"
			  "cart_flush;fsync;[disk fsync] 90000000\n");
	cr_expect_eq(RUN(export, trace, "--folded", "-"), CLI_OK);
	EXPECT_IN(out, "[disk fsync] 180000000\n");
	cr_expect_eq(RUN(export, trace), CLI_USAGE);
	cr_expect_eq(RUN(export, trace, "--pprof", "/nonexistent/x"), CLI_FAILED);
	EXPECT_IN(told, "/nonexistent/x: No such file");
	cr_expect_eq(RUN(export, trace, "--pprof", "/dev/full"), CLI_FAILED);
	EXPECT_IN(told, "No space left");
	unlink(pb);
	unlink(folded);
}

Test(analyze, profile_read_by_go, .init = setup, .fini = teardown)
{
	char pb[64], cmd[256], line[256];
	bool lock = false, fsync = false;

	if (system("command -v go >/dev/null 2>&1") != 0)
		cr_skip_test("no go: the profile is not read by its pprof");
	make_temp(pb);
	cr_expect_eq(RUN(export, trace, "--pprof", pb, "--request", "7f3a#20"), CLI_OK);
	snprintf(cmd, sizeof(cmd), "go tool pprof -top -unit=ms %s 2>/dev/null", pb);
	FILE *f = popen(cmd, "r");

	cr_assert_not_null(f);
	while (fgets(line, sizeof(line), f)) {
		fsync = fsync || (strstr(line, "fsync") && strstr(line, "90ms"));
		lock = lock || (strstr(line, "cart_add") && strstr(line, "100ms"));
	}
	cr_expect_eq(pclose(f), 0);
	cr_expect(fsync && lock);
	unlink(pb);
}
