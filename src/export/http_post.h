/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_post: sends JSON to a server by HTTP or HTTPS, patiently: what passes (429, 502, 503, 504,
 * no answer in time) is tried again, after what Retry-After says or twice the time of before.
 *
 * libcurl is loaded when it is first needed: linked, it and its two dozen libraries would be mapped
 * into every `top`.
 */
#ifndef CC_HTTP_POST_H
#define CC_HTTP_POST_H

#include "base.h"

struct http_post;

struct http_post_opts {
	const char *url;         /* borrowed */
	const char *headers;     /* "key=value,key=value", percent-coded; NULL: none */
	unsigned int tries;      /* 0: 5 */
	unsigned int wait_ms;    /* before the second try; 0: 500 */
	unsigned int timeout_ms; /* of one try; 0: 10000 */
};

/* Returns 0, -ENOMEM, -EINVAL for headers that are none, -ENOSYS without libcurl; *err says why. */
CC_NODISCARD int http_post_new(const struct http_post_opts *o, struct cc_err *err,
			       struct http_post **ret);
void http_post_free(struct http_post *h);

/* Posts @len bytes and, when the server took them, gives its answer (NUL-terminated, borrowed until
 * the next). Returns 0 or -EIO, and *err says why. */
CC_NODISCARD int http_post_send(struct http_post *h, const char *body, size_t len,
				struct cc_err *err, const char **ret_answer);

#endif
