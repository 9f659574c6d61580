/* SPDX-License-Identifier: Apache-2.0 */
#include "otlp_parts.h"

#include <inttypes.h>
#include <string.h>

#include "map.h"

static uint64_t hash_text(const char *s)
{
	uint64_t h = 0;

	for (; *s; s++)
		h = map_mix2(h, (unsigned char)*s);
	return h;
}

struct otlp_trace_id otlp_trace_of(const struct snapshot *s, const struct snap_request *r)
{
	uint64_t id = map_mix2(r->id.id, (uint64_t)r->id.kind << 32 | r->id.ordinal);
	uint64_t at = map_mix2(hash_text(snapshot_str(s, s->host)), r->start);
	struct otlp_trace_id t = { map_mix2(id, at), map_mix2(at, id) };

	t.lo |= !t.lo; /* all zero means none */
	return t;
}

uint64_t otlp_span_of(struct otlp_trace_id t, uint32_t n)
{
	uint64_t span = map_mix2(t.lo, n);

	return span ? span : 1;
}

void otlp_put_trace(struct json *j, struct otlp_trace_id t)
{
	char text[33];

	snprintf(text, sizeof(text), "%016" PRIx64 "%016" PRIx64, t.hi, t.lo);
	json_str(j, "traceId", text);
}

void otlp_put_span(struct json *j, const char *key, uint64_t span)
{
	char text[17];

	snprintf(text, sizeof(text), "%016" PRIx64, span);
	json_str(j, key, text);
}

void otlp_put_u64(struct json *j, const char *key, uint64_t v)
{
	char text[21];

	snprintf(text, sizeof(text), "%" PRIu64, v);
	json_str(j, key, text);
}

void otlp_attr_str(struct json *j, const char *key, const char *text)
{
	if (!*text)
		return;
	json_open(j, NULL, '{');
	json_str(j, "key", key);
	json_open(j, "value", '{');
	json_str(j, "stringValue", text);
	json_close(j, '}');
	json_close(j, '}');
}

void otlp_attr_int(struct json *j, const char *key, uint64_t v)
{
	json_open(j, NULL, '{');
	json_str(j, "key", key);
	json_open(j, "value", '{');
	otlp_put_u64(j, "intValue", v);
	json_close(j, '}');
	json_close(j, '}');
}

static const char *service_name(const struct snapshot *s, uint32_t tgid)
{
	const char *name = snapshot_str(s, s->target.comm);

	for (uint32_t i = 0; i < s->target_cnt; i++) {
		if (s->targets[i].task.tgid == tgid)
			name = snapshot_str(s, s->targets[i].task.comm);
	}
	return *name ? name : "unknown_service";
}

void otlp_put_resource(struct json *j, const struct snapshot *s, uint32_t tgid)
{
	const char *host = snapshot_str(s, s->host);
	char name[256];

	/* "name kernel machine" */
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(host, " "), host);
	json_open(j, "resource", '{');
	json_open(j, "attributes", '[');
	otlp_attr_str(j, "service.name", service_name(s, tgid));
	if (tgid)
		otlp_attr_int(j, "process.pid", tgid);
	otlp_attr_str(j, "host.name", name);
	json_close(j, ']');
	json_close(j, '}');
}

void otlp_put_scope(struct json *j)
{
	json_open(j, "scope", '{');
	json_str(j, "name", "criticast");
	json_close(j, '}');
}
