/* SPDX-License-Identifier: Apache-2.0 */
/* otlp_parts: what traces and profiles of OTLP have in common. */
#ifndef CC_OTLP_PARTS_H
#define CC_OTLP_PARTS_H

#include "json_write.h"
#include "snapshot.h"

struct otlp_trace_id {
	uint64_t hi, lo;
};
struct otlp_trace_id otlp_trace_of(const struct snapshot *s, const struct snap_request *r);
/* @n: 0 the request's own span, else 1 + index of a piece. */
uint64_t otlp_span_of(struct otlp_trace_id t, uint32_t n);
void otlp_put_trace(struct json *j, struct otlp_trace_id t);
void otlp_put_span(struct json *j, const char *key, uint64_t span);

void otlp_put_u64(struct json *j, const char *key, uint64_t v); /* as JSON has 64 bits: a string */

/* An element of "attributes". */
void otlp_attr_str(struct json *j, const char *key, const char *text); /* "": none */
void otlp_attr_int(struct json *j, const char *key, uint64_t v);

/* "resource" of process @tgid and "scope". */
void otlp_put_resource(struct json *j, const struct snapshot *s, uint32_t tgid);
void otlp_put_scope(struct json *j);

#endif
