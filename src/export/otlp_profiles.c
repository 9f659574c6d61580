/* SPDX-License-Identifier: Apache-2.0 */
/* Source: profiles.proto (v1development) of opentelemetry-proto 1.9. Entry 0 of every table is
 * empty, so that the numbers of profile.h are theirs. */
#include "otlp.h"

#include <errno.h>
#include <stdlib.h>

#include "otlp_parts.h"
#include "profile.h"

struct writer {
	const struct snapshot *s;
	struct profile p;
	struct json j;
	uint32_t build_id_key; /* string */
};

static void empty(struct json *j)
{
	json_open(j, NULL, '{');
	json_close(j, '}');
}

/* ---- the dictionary ---- */

/* Attributes: each build-id, then the labels of each sample in their order. */
static uint32_t label_attr(const struct writer *w, uint32_t sample, uint32_t label)
{
	return 1 + w->p.mappings.cnt + sample * PROF_LABEL_CNT + label;
}

static void put_attr(struct writer *w, uint32_t key, uint32_t value)
{
	json_open(&w->j, NULL, '{');
	json_u64(&w->j, "keyStrindex", key);
	json_open(&w->j, "value", '{');
	json_str(&w->j, "stringValue", profile_string(&w->p, value));
	json_close(&w->j, '}');
	json_close(&w->j, '}');
}

static void put_attrs(struct writer *w)
{
	json_open(&w->j, "attributeTable", '[');
	empty(&w->j);
	for (uint32_t i = 0; i < w->p.mappings.cnt; i++)
		put_attr(w, w->build_id_key, w->p.mappings.p[i].build_id);
	for (uint32_t i = 0; i < w->p.samples.cnt; i++) {
		for (uint32_t k = 0; k < PROF_LABEL_CNT; k++)
			put_attr(w, w->p.label_name[k], w->p.samples.p[i].label[k]);
	}
	json_close(&w->j, ']');
}

static void put_mappings(struct writer *w)
{
	json_open(&w->j, "mappingTable", '[');
	empty(&w->j);
	for (uint32_t i = 0; i < w->p.mappings.cnt; i++) {
		const struct prof_mapping *m = &w->p.mappings.p[i];

		json_open(&w->j, NULL, '{');
		otlp_put_u64(&w->j, "memoryStart", m->start);
		otlp_put_u64(&w->j, "memoryLimit", m->end);
		otlp_put_u64(&w->j, "fileOffset", m->file_off);
		json_u64(&w->j, "filenameStrindex", m->file);
		json_open(&w->j, "attributeIndices", '[');
		json_u64(&w->j, NULL, 1 + i);
		json_close(&w->j, ']');
		json_close(&w->j, '}');
	}
	json_close(&w->j, ']');
}

static void put_locations(struct writer *w)
{
	json_open(&w->j, "locationTable", '[');
	empty(&w->j);
	for (uint32_t i = 0; i < w->p.locations.cnt; i++) {
		const struct prof_location *x = &w->p.locations.p[i];

		json_open(&w->j, NULL, '{');
		json_u64(&w->j, "mappingIndex", x->mapping);
		otlp_put_u64(&w->j, "address", x->address);
		json_open(&w->j, "lines", '[');
		for (uint32_t k = 0; k < x->cnt; k++) {
			const struct prof_line *l = &w->p.lines.p[x->first + k];

			json_open(&w->j, NULL, '{');
			json_u64(&w->j, "functionIndex", l->function);
			otlp_put_u64(&w->j, "line", l->line);
			json_close(&w->j, '}');
		}
		json_close(&w->j, ']');
		json_close(&w->j, '}');
	}
	json_close(&w->j, ']');
}

static void put_functions(struct writer *w)
{
	json_open(&w->j, "functionTable", '[');
	empty(&w->j);
	for (uint32_t i = 0; i < w->p.functions.cnt; i++) {
		json_open(&w->j, NULL, '{');
		json_u64(&w->j, "nameStrindex", w->p.functions.p[i].name);
		json_u64(&w->j, "filenameStrindex", w->p.functions.p[i].file);
		json_close(&w->j, '}');
	}
	json_close(&w->j, ']');
}

/* A stack is one sample's: that is what makes it a sample of its own. */
static void put_stacks(struct writer *w)
{
	json_open(&w->j, "stackTable", '[');
	empty(&w->j);
	for (uint32_t i = 0; i < w->p.samples.cnt; i++) {
		const struct prof_sample *x = &w->p.samples.p[i];

		json_open(&w->j, NULL, '{');
		json_open(&w->j, "locationIndices", '[');
		for (uint32_t k = 0; k < x->cnt; k++)
			json_u64(&w->j, NULL, w->p.ids.p[x->first + k]);
		json_close(&w->j, ']');
		json_close(&w->j, '}');
	}
	json_close(&w->j, ']');
}

/* The request's own span, for each request. */
static void put_links(struct writer *w)
{
	json_open(&w->j, "linkTable", '[');
	empty(&w->j);
	for (uint32_t i = 0; i < w->s->request_cnt; i++) {
		struct otlp_trace_id t = otlp_trace_of(w->s, &w->s->requests[i]);

		json_open(&w->j, NULL, '{');
		otlp_put_trace(&w->j, t);
		otlp_put_span(&w->j, "spanId", otlp_span_of(t, 0));
		json_close(&w->j, '}');
	}
	json_close(&w->j, ']');
}

static void put_dictionary(struct writer *w)
{
	json_open(&w->j, "dictionary", '{');
	put_mappings(w);
	put_locations(w);
	put_functions(w);
	put_links(w);
	json_open(&w->j, "stringTable", '[');
	for (uint32_t i = 0; i <= w->p.strings.cnt; i++)
		json_str(&w->j, NULL, profile_string(&w->p, i));
	json_close(&w->j, ']');
	put_attrs(w);
	put_stacks(w);
	json_close(&w->j, '}');
}

/* ---- the profiles: one for each value ---- */

static void put_sample(struct writer *w, uint32_t i, uint64_t value)
{
	json_open(&w->j, NULL, '{');
	json_u64(&w->j, "stackIndex", 1 + i);
	json_open(&w->j, "values", '[');
	otlp_put_u64(&w->j, NULL, value);
	json_close(&w->j, ']');
	json_open(&w->j, "attributeIndices", '[');
	for (uint32_t k = 0; k < PROF_LABEL_CNT; k++)
		json_u64(&w->j, NULL, label_attr(w, i, k));
	json_close(&w->j, ']');
	json_u64(&w->j, "linkIndex", 1 + w->p.samples.p[i].request);
	json_close(&w->j, '}');
}

static void put_profile(struct writer *w, int type)
{
	const struct snapshot *s = w->s;

	json_open(&w->j, NULL, '{');
	json_open(&w->j, "sampleType", '{');
	json_u64(&w->j, "typeStrindex", w->p.type[type]);
	json_u64(&w->j, "unitStrindex", w->p.unit[type]);
	json_close(&w->j, '}');
	json_open(&w->j, "samples", '[');
	for (uint32_t i = 0; i < w->p.samples.cnt; i++)
		put_sample(w, i, type ? w->p.samples.p[i].waits : w->p.samples.p[i].ns);
	json_close(&w->j, ']');
	otlp_put_u64(&w->j, "timeUnixNano",
		     s->now_ns - s->window_ns + (uint64_t)s->realtime_off_ns);
	otlp_put_u64(&w->j, "durationNano", s->window_ns);
	json_close(&w->j, '}');
}

static void put_all(struct writer *w)
{
	json_open(&w->j, NULL, '{');
	json_open(&w->j, "resourceProfiles", '[');
	json_open(&w->j, NULL, '{');
	otlp_put_resource(&w->j, w->s, w->s->target.tgid);
	json_open(&w->j, "scopeProfiles", '[');
	json_open(&w->j, NULL, '{');
	otlp_put_scope(&w->j);
	json_open(&w->j, "profiles", '[');
	put_profile(w, 0);
	put_profile(w, 1);
	json_close(&w->j, ']');
	json_close(&w->j, '}');
	json_close(&w->j, ']');
	json_close(&w->j, '}');
	json_close(&w->j, ']');
	put_dictionary(w);
	json_close(&w->j, '}');
	fputc('\n', w->j.out);
}

int otlp_profiles_write(const struct snapshot *s, FILE *out)
{
	static const char key[] = "process.executable.build_id.gnu";
	struct writer w = { .s = s, .j = { .out = out } };
	int err = profile_build(s, &w.p)
			  ?: profile_add_string(&w.p, key, sizeof(key) - 1, &w.build_id_key);

	if (!err)
		put_all(&w);
	profile_done(&w.p);
	return err ? err : ferror(out) ? -EIO : 0;
}
