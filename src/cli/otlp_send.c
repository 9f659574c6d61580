/* SPDX-License-Identifier: Apache-2.0 */
#include "otlp_send.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http_post.h"

bool otlp_is_url(const char *where)
{
	return !strncmp(where, "http://", 7) || !strncmp(where, "https://", 8);
}

/* "http://host:4318" and ".../" are the collector; with a path it is the very address. */
static void full_url(const char *url, enum export_format format, char *buf, size_t cap)
{
	const char *path = strchr(strstr(url, "//") + 2, '/');
	bool whole = path && path[1];
	size_t len = path ? (size_t)(path - url) : strlen(url);

	snprintf(buf, cap, "%.*s%s", whole ? (int)strlen(url) : (int)len, url,
		 whole                            ? ""
		 : format == FORMAT_OTLP_PROFILES ? "/v1development/profiles"
						  : "/v1/traces");
}

/* Taken, but not all of it: {"partialSuccess":{"rejectedSpans":"3","errorMessage":".."}}. */
static bool was_refused(const char *answer, struct cc_err *err)
{
	static const char *const counts[] = { "rejectedSpans", "rejectedProfiles" };
	cJSON *all = cJSON_Parse(answer);
	const cJSON *part = cJSON_GetObjectItemCaseSensitive(all, "partialSuccess");
	long long cnt = 0;

	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		const cJSON *n = cJSON_GetObjectItemCaseSensitive(part, counts[i]);

		if (cJSON_IsString(n))
			cnt += strtoll(n->valuestring, NULL, 10);
		else if (cJSON_IsNumber(n))
			cnt += (long long)n->valuedouble;
	}
	if (cnt > 0) {
		const char *why = cJSON_GetStringValue(
			cJSON_GetObjectItemCaseSensitive(part, "errorMessage"));

		snprintf(err->msg, sizeof(err->msg), "%lld refused: %.100s", cnt, why ? why : "");
	}
	cJSON_Delete(all);
	return cnt > 0;
}

static int send_lines(struct http_post *h, const char *text, struct cc_err *err)
{
	const char *answer;

	for (const char *end; *text; text = end + 1) {
		end = strchr(text, '\n');
		int bad = http_post_send(h, text, (size_t)(end - text), err, &answer);

		if (bad)
			return bad;
		if (was_refused(answer, err))
			return -EIO;
	}
	return 0;
}

/* Milliseconds, as exporters of OpenTelemetry have it. Returns 0 when it is not said, -EINVAL. */
static int timeout_of(const char *text, unsigned int *ret)
{
	char *end;
	unsigned long ms = text ? strtoul(text, &end, 10) : 0;

	*ret = (unsigned int)ms;
	return !text || !*text || (*text >= '1' && *text <= '9' && !*end && ms <= INT_MAX)
		       ? 0
		       : -EINVAL;
}

enum cli_exit otlp_send(const struct snapshot *s, enum export_format format, const char *url)
{
	char full[2048], *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	struct http_post *h = NULL;
	struct cc_err err = { 0 };
	int bad = f ? format_write(format, s, f) : -ENOMEM;

	if (f && fclose(f) && !bad)
		bad = -ENOMEM;
	if (bad)
		snprintf(err.msg, sizeof(err.msg), "%s", strerror(-bad));
	full_url(url, format, full, sizeof(full));
	struct http_post_opts o = { .url = full, .headers = getenv("OTEL_EXPORTER_OTLP_HEADERS") };

	if (!bad && (bad = timeout_of(getenv("OTEL_EXPORTER_OTLP_TIMEOUT"), &o.timeout_ms)))
		snprintf(err.msg, sizeof(err.msg),
			 "OTEL_EXPORTER_OTLP_TIMEOUT: wanted milliseconds");
	if (!bad)
		bad = http_post_new(&o, &err, &h);
	if (!bad)
		bad = send_lines(h, text, &err);
	http_post_free(h);
	free(text);
	return bad ? cli_fail(CLI_FAILED, "cannot send to %s: %s", full, err.msg) : CLI_OK;
}
