/* SPDX-License-Identifier: Apache-2.0 */
/* json_write: JSON to a FILE as it comes. Integers stay integers; no locale; errors stay in FILE.
 */
#ifndef CC_JSON_WRITE_H
#define CC_JSON_WRITE_H

#include <stdio.h>

#include "base.h"

struct json {
	FILE *out;
	bool more; /* something stands before on this level: a comma is due */
};

/* @key: NULL in an array and at the top. @text: UTF-8; control characters are escaped. */
void json_open(struct json *j, const char *key, char bracket); /* '{' or '[' */
void json_close(struct json *j, char bracket);
void json_str(struct json *j, const char *key, const char *text);
void json_u64(struct json *j, const char *key, uint64_t v);
void json_i64(struct json *j, const char *key, int64_t v);
void json_bool(struct json *j, const char *key, bool v);
void json_null(struct json *j, const char *key);
void json_share(struct json *j, const char *key, double v); /* >= 0, six digits after the point */

#endif
