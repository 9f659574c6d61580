/* SPDX-License-Identifier: Apache-2.0 */
/* Source: https://github.com/google/pprof/blob/main/proto/profile.proto */
#include "pprof.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "profile.h"
#include "proto_write.h"

/* Field numbers of profile.proto. */
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_MAPPING = 3,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING = 6,
	PROFILE_TIME = 9,
	PROFILE_DURATION = 10,
	PROFILE_COMMENT = 13,
	PROFILE_DEFAULT_TYPE = 14
};
enum { VALUE_TYPE = 1, VALUE_UNIT = 2 };
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE = 2, SAMPLE_LABEL = 3 };
enum { LABEL_KEY = 1, LABEL_STR = 2 };
enum {
	MAPPING_ID = 1,
	MAPPING_START = 2,
	MAPPING_LIMIT = 3,
	MAPPING_OFFSET = 4,
	MAPPING_FILE = 5,
	MAPPING_BUILD_ID = 6,
	MAPPING_HAS_FUNCTIONS = 7,
	MAPPING_HAS_FILES = 8,
	MAPPING_HAS_LINES = 9,
	MAPPING_HAS_INLINED = 10
};
enum { LOCATION_ID = 1, LOCATION_MAPPING = 2, LOCATION_ADDRESS = 3, LOCATION_LINE = 4 };
enum { LINE_FUNCTION = 1, LINE_NUMBER = 2 };
enum { FUNCTION_ID = 1, FUNCTION_NAME = 2, FUNCTION_SYSTEM_NAME = 3, FUNCTION_FILE = 4 };

struct encoder {
	struct profile p;
	struct msg out, part, inner;
};

/* By convention counts come first, and who does not look at the default opens the last one. */
static void put_types(struct encoder *e)
{
	for (int i = 1; i >= 0; i--) {
		put_int(&e->part, VALUE_TYPE, e->p.type[i]);
		put_int(&e->part, VALUE_UNIT, e->p.unit[i]);
		put_msg(&e->out, PROFILE_SAMPLE_TYPE, &e->part);
	}
}

static void put_samples(struct encoder *e)
{
	for (uint32_t i = 0; i < e->p.samples.cnt; i++) {
		const struct prof_sample *x = &e->p.samples.p[i];

		for (uint32_t k = 0; k < x->cnt; k++)
			put_varint(&e->inner, e->p.ids.p[x->first + k]);
		put_msg(&e->part, SAMPLE_LOCATION, &e->inner);
		put_varint(&e->inner, x->waits);
		put_varint(&e->inner, x->ns);
		put_msg(&e->part, SAMPLE_VALUE, &e->inner);
		for (uint32_t k = 0; k < PROF_LABEL_CNT; k++) {
			put_int(&e->inner, LABEL_KEY, e->p.label_name[k]);
			put_int(&e->inner, LABEL_STR, x->label[k]);
			put_msg(&e->part, SAMPLE_LABEL, &e->inner);
		}
		put_msg(&e->out, PROFILE_SAMPLE, &e->part);
	}
}

/* All names are in it: nobody needs to look for the files. */
static void put_mappings(struct encoder *e)
{
	for (uint32_t i = 0; i < e->p.mappings.cnt; i++) {
		const struct prof_mapping *x = &e->p.mappings.p[i];

		put_int(&e->part, MAPPING_ID, i + 1);
		put_int(&e->part, MAPPING_START, x->start);
		put_int(&e->part, MAPPING_LIMIT, x->end);
		put_int(&e->part, MAPPING_OFFSET, x->file_off);
		put_int(&e->part, MAPPING_FILE, x->file);
		put_int(&e->part, MAPPING_BUILD_ID, x->build_id);
		for (unsigned int has = MAPPING_HAS_FUNCTIONS; has <= MAPPING_HAS_INLINED; has++)
			put_int(&e->part, has, 1);
		put_msg(&e->out, PROFILE_MAPPING, &e->part);
	}
}

static void put_locations(struct encoder *e)
{
	for (uint32_t i = 0; i < e->p.locations.cnt; i++) {
		const struct prof_location *x = &e->p.locations.p[i];

		put_int(&e->part, LOCATION_ID, i + 1);
		put_int(&e->part, LOCATION_MAPPING, x->mapping);
		put_int(&e->part, LOCATION_ADDRESS, x->address);
		for (uint32_t k = 0; k < x->cnt; k++) {
			put_int(&e->inner, LINE_FUNCTION, e->p.lines.p[x->first + k].function);
			put_int(&e->inner, LINE_NUMBER, e->p.lines.p[x->first + k].line);
			put_msg(&e->part, LOCATION_LINE, &e->inner);
		}
		put_msg(&e->out, PROFILE_LOCATION, &e->part);
	}
	for (uint32_t i = 0; i < e->p.functions.cnt; i++) {
		const struct prof_function *x = &e->p.functions.p[i];

		put_int(&e->part, FUNCTION_ID, i + 1);
		put_int(&e->part, FUNCTION_NAME, x->name);
		put_int(&e->part, FUNCTION_SYSTEM_NAME, x->name);
		put_int(&e->part, FUNCTION_FILE, x->file);
		put_msg(&e->out, PROFILE_FUNCTION, &e->part);
	}
}

static void put_strings(struct encoder *e)
{
	for (uint32_t i = 0; i <= e->p.strings.cnt; i++)
		put_text(&e->out, PROFILE_STRING, profile_string(&e->p, i));
}

/* What a reader of the numbers should know: go tool pprof -comments. */
static int put_comments(struct encoder *e, const struct snapshot *s)
{
	for (uint32_t i = 0; i <= s->note_cnt; i++) {
		const char *text = snapshot_str(s, i ? s->notes[i - 1] : s->host);
		uint32_t id;
		int err = profile_add_string(&e->p, text, strlen(text), &id);

		if (err)
			return err;
		if (id)
			put_int(&e->out, PROFILE_COMMENT, id);
	}
	return 0;
}

static int encode(struct encoder *e, const struct snapshot *s)
{
	int err = profile_build(s, &e->p) ?: put_comments(e, s);

	if (err)
		return err;
	put_types(e);
	put_samples(e);
	put_mappings(e);
	put_locations(e);
	put_strings(e);
	put_int(&e->out, PROFILE_TIME, s->now_ns - s->window_ns + (uint64_t)s->realtime_off_ns);
	put_int(&e->out, PROFILE_DURATION, s->window_ns);
	put_int(&e->out, PROFILE_DEFAULT_TYPE, e->p.type[0]);
	return e->out.err;
}

static int write_gzip(const struct msg *m, FILE *out)
{
	z_stream z = { 0 };
	uint8_t buf[16384] = { 0 };
	int end;

	if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) !=
	    Z_OK)
		return -ENOMEM;
	z.next_in = m->b.p;
	z.avail_in = m->b.cnt;
	do {
		z.next_out = buf;
		z.avail_out = sizeof(buf);
		end = deflate(&z, Z_FINISH);
		fwrite(buf, 1, sizeof(buf) - z.avail_out, out);
	} while (end == Z_OK);
	deflateEnd(&z);
	return end != Z_STREAM_END || ferror(out) ? -EIO : 0;
}

int pprof_write(const struct snapshot *s, FILE *out)
{
	struct encoder *e = calloc(1, sizeof(*e));

	if (!e)
		return -ENOMEM;
	int err = encode(e, s);

	if (!err)
		err = write_gzip(&e->out, out);
	profile_done(&e->p);
	msg_done(&e->out);
	msg_done(&e->part);
	msg_done(&e->inner);
	free(e);
	return err;
}
