/* SPDX-License-Identifier: Apache-2.0 */
/* Source: https://opentelemetry.io/docs/specs/otlp/#otlphttp-response: which answers are tried
 * again. */
#define CURL_DISABLE_TYPECHECK
#include "http_post.h"

#include <ctype.h>
#include <curl/curl.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#undef curl_easy_setopt
#undef curl_easy_getinfo

#define ANSWER_MAX 65536
#define WAIT_MAX_MS 30000

#define CURL_CALLS(X)    \
	X(global_init)   \
	X(easy_init)     \
	X(easy_setopt)   \
	X(easy_perform)  \
	X(easy_getinfo)  \
	X(easy_strerror) \
	X(easy_cleanup)  \
	X(slist_append)  \
	X(slist_free_all)
struct curl_lib {
	void *handle;
#define X(name) typeof(curl_##name) *name;
	CURL_CALLS(X)
#undef X
};

struct http_post {
	struct http_post_opts o;
	struct curl_lib lib;
	CURL *curl;
	struct curl_slist *headers;
	char answer[ANSWER_MAX + 1];
	size_t answer_len;
};

static int load(struct curl_lib *lib)
{
	static const char *const files[] = { "libcurl.so.4", "libcurl-gnutls.so.4" };

	for (size_t i = 0; i < ARRAY_SIZE(files) && !lib->handle; i++)
		lib->handle = dlopen(files[i], RTLD_NOW | RTLD_LOCAL);
	if (!lib->handle)
		return -ENOSYS;
#define X(name)                                                   \
	*(void **)&lib->name = dlsym(lib->handle, "curl_" #name); \
	if (!lib->name)                                           \
		return -ENOSYS;
	CURL_CALLS(X)
#undef X
	return 0;
}

static size_t take_answer(char *data, size_t size, size_t cnt, void *ctx)
{
	struct http_post *h = ctx;
	size_t n = CC_MIN(size * cnt, ANSWER_MAX - h->answer_len);

	memcpy(h->answer + h->answer_len, data, n);
	h->answer_len += n;
	h->answer[h->answer_len] = '\0';
	return size * cnt;
}

static int add_header(struct http_post *h, const char *line)
{
	struct curl_slist *more = h->lib.slist_append(h->headers, line);

	if (!more)
		return -ENOMEM;
	h->headers = more;
	return 0;
}

static int hex(char c) { return isdigit((unsigned char)c) ? c - '0' : (tolower(c) - 'a') + 10; }

/* "key=value" becomes "key: value", %XX decoded. A line end in it would make a header of its own.
 */
static int add_pair(struct http_post *h, const char *pair, size_t len)
{
	char line[2048];
	size_t n = 0;
	bool value = false;

	for (size_t i = 0; i < len; i++) {
		char c = pair[i];

		if (n + 3 > sizeof(line))
			return -EINVAL;
		if (!value && c == '=') {
			line[n++] = ':';
			line[n++] = ' ';
			value = true;
			continue;
		}
		if (c == '%' && i + 2 < len && isxdigit((unsigned char)pair[i + 1]) &&
		    isxdigit((unsigned char)pair[i + 2])) {
			c = (char)(hex(pair[i + 1]) << 4 | hex(pair[i + 2]));
			i += 2;
		}
		if ((unsigned char)c < ' ')
			return -EINVAL;
		line[n++] = c;
	}
	line[n] = '\0';
	return value ? add_header(h, line) : -EINVAL;
}

static int add_headers(struct http_post *h)
{
	const char *s = h->o.headers ? h->o.headers : "";
	int err = add_header(h, "Content-Type: application/json");

	while (*s && !err) {
		size_t len = strcspn(s, ",");

		err = add_pair(h, s, len);
		s += len + (s[len] == ',');
	}
	return err;
}

static void set_up(struct http_post *h)
{
	struct curl_lib *lib = &h->lib;

	lib->easy_setopt(h->curl, CURLOPT_URL, h->o.url);
	lib->easy_setopt(h->curl, CURLOPT_HTTPHEADER, h->headers);
	lib->easy_setopt(h->curl, CURLOPT_TIMEOUT_MS, (long)h->o.timeout_ms);
	lib->easy_setopt(h->curl, CURLOPT_NOSIGNAL, 1L);
	lib->easy_setopt(h->curl, CURLOPT_USERAGENT, "criticast");
	lib->easy_setopt(h->curl, CURLOPT_WRITEFUNCTION, take_answer);
	lib->easy_setopt(h->curl, CURLOPT_WRITEDATA, h);
}

int http_post_new(const struct http_post_opts *o, struct cc_err *err, struct http_post **ret)
{
	struct http_post *h = calloc(1, sizeof(*h));
	int bad = h ? 0 : -ENOMEM;

	if (!bad) {
		h->o = *o;
		h->o.tries = o->tries ? o->tries : 5;
		h->o.wait_ms = o->wait_ms ? o->wait_ms : 500;
		h->o.timeout_ms = o->timeout_ms ? o->timeout_ms : 10000;
		bad = load(&h->lib);
	}
	if (!bad && h->lib.global_init(CURL_GLOBAL_DEFAULT))
		bad = -ENOMEM;
	if (!bad)
		bad = add_headers(h);
	if (!bad && !(h->curl = h->lib.easy_init()))
		bad = -ENOMEM;
	if (bad) {
		snprintf(err->msg, sizeof(err->msg), "%s",
			 bad == -ENOSYS   ? "libcurl is missing: install libcurl4"
			 : bad == -EINVAL ? "OTEL_EXPORTER_OTLP_HEADERS: wanted key=value,key=value"
					  : "out of memory");
		http_post_free(h);
		return bad;
	}
	set_up(h);
	*ret = h;
	return 0;
}

/* The library stays loaded: it does not like to go. */
void http_post_free(struct http_post *h)
{
	if (!h)
		return;
	if (h->headers)
		h->lib.slist_free_all(h->headers);
	if (h->curl)
		h->lib.easy_cleanup(h->curl);
	free(h);
}

static bool passes(CURLcode code, long status)
{
	if (code)
		return code == CURLE_OPERATION_TIMEDOUT || code == CURLE_GOT_NOTHING ||
		       code == CURLE_SEND_ERROR || code == CURLE_RECV_ERROR;
	return status == 429 || status == 502 || status == 503 || status == 504;
}

static void wait_ms(uint64_t ms)
{
	struct timespec t = { (time_t)(ms / 1000), (long)(ms % 1000) * 1000000 };

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

static uint64_t next_wait(const struct http_post *h, unsigned int tried)
{
	curl_off_t after = 0;

	h->lib.easy_getinfo(h->curl, CURLINFO_RETRY_AFTER, &after);
	if (after > 0)
		return CC_MIN((uint64_t)after * 1000, (uint64_t)WAIT_MAX_MS);
	return CC_MIN((uint64_t)h->o.wait_ms << (tried - 1), (uint64_t)WAIT_MAX_MS);
}

int http_post_send(struct http_post *h, const char *body, size_t len, struct cc_err *err,
		   const char **ret_answer)
{
	CURLcode code = CURLE_OK;
	long status = 0;

	h->lib.easy_setopt(h->curl, CURLOPT_POSTFIELDS, body);
	h->lib.easy_setopt(h->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)len);
	for (unsigned int tried = 1;; tried++) {
		h->answer_len = 0;
		h->answer[0] = '\0';
		code = h->lib.easy_perform(h->curl);
		h->lib.easy_getinfo(h->curl, CURLINFO_RESPONSE_CODE, &status);
		if (!code && status >= 200 && status < 300) {
			*ret_answer = h->answer;
			return 0;
		}
		if (!passes(code, status) || tried == h->o.tries) {
			char times[32] = "";

			if (tried > 1)
				snprintf(times, sizeof(times), " (%u tries)", tried);
			if (code)
				snprintf(err->msg, sizeof(err->msg), "%s%s",
					 h->lib.easy_strerror(code), times);
			else
				snprintf(err->msg, sizeof(err->msg), "HTTP %ld%s%s%.100s", status,
					 times, *h->answer ? ": " : "", h->answer);
			return -EIO;
		}
		wait_ms(next_wait(h, tried));
	}
}
