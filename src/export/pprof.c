/* SPDX-License-Identifier: Apache-2.0 */
/* Source: https://github.com/google/pprof/blob/main/proto/profile.proto */
#include "pprof.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "flame.h"
#include "map.h"
#include "strpool.h"

/* Field numbers of profile.proto. */
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING = 6,
	PROFILE_TIME = 9,
	PROFILE_DURATION = 10,
	PROFILE_DEFAULT_TYPE = 14
};
enum { VALUE_TYPE = 1, VALUE_UNIT = 2 };
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE = 2, SAMPLE_LABEL = 3 };
enum { LABEL_KEY = 1, LABEL_STR = 2 };
enum { LOCATION_ID = 1, LOCATION_LINE = 4 };
enum { LINE_FUNCTION = 1, LINE_NUMBER = 2 };
enum { FUNCTION_ID = 1, FUNCTION_NAME = 2, FUNCTION_SYSTEM_NAME = 3, FUNCTION_FILE = 4 };

/* A message in the making; err is sticky. */
struct msg {
	struct mem mem;
	VEC(uint8_t) b;
	int err;
};

static void put_bytes(struct msg *m, const void *data, size_t len)
{
	if (m->err || (m->err = vec_reserve(&m->mem, &m->b, m->b.cnt + len)))
		return;
	if (len)
		memcpy(m->b.p + m->b.cnt, data, len);
	m->b.cnt += (uint32_t)len;
}

static void put_varint(struct msg *m, uint64_t v)
{
	uint8_t buf[10];
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		buf[n++] = (uint8_t)(v | 0x80);
	buf[n++] = (uint8_t)v;
	put_bytes(m, buf, n);
}

static void put_int(struct msg *m, unsigned int field, uint64_t v)
{
	put_varint(m, field << 3);
	put_varint(m, v);
}

static void put_block(struct msg *m, unsigned int field, const void *data, size_t len)
{
	put_varint(m, field << 3 | 2);
	put_varint(m, len);
	put_bytes(m, data, len);
}

/* Ends a nested message: it becomes a field of @m and is empty again. */
static void put_msg(struct msg *m, unsigned int field, struct msg *nested)
{
	put_block(m, field, nested->b.p, nested->b.cnt);
	m->err = m->err ? m->err : nested->err;
	nested->b.cnt = 0;
}

static void msg_done(struct msg *m) { vec_done(&m->mem, &m->b); }

/* ---- tables ---- */

struct place { /* location and function at once: they have the same id, index + 1 */
	uint32_t name, file, line;
};

struct stack {               /* one sample row */
	uint32_t first, cnt; /* in ids[] */
	uint32_t cls, thread;
	cc_ns ns;
	uint64_t waits;
};

struct profile {
	struct mem mem;
	struct strpool pool;
	struct map string_ids; /* offset in pool -> index in the string table */
	VEC(uint32_t) strings; /* offsets in pool, by index */
	struct map place_ids;  /* of name and file -> 1 + index */
	VEC(struct place) places;
	VEC(uint32_t) ids;    /* location ids of all stacks */
	struct map stack_ids; /* hash -> 1 + index; stacks decide */
	VEC(struct stack) stacks;
	struct msg out, part, inner;
};

/* Index in the string table; 0 is "", as the format wants it. */
static int string_id(struct profile *p, const char *text, size_t len, uint32_t *ret)
{
	uint32_t off = strpool_add(&p->pool, text, len);

	*ret = off ? map_get(&p->string_ids, off) : 0;
	if (*ret || !off)
		return p->pool.err;
	if (vec_reserve(&p->mem, &p->strings, p->strings.cnt + 1) ||
	    map_put(&p->mem, &p->string_ids, off, p->strings.cnt + 1))
		return -ENOMEM;
	p->strings.p[p->strings.cnt++] = off;
	*ret = p->strings.cnt;
	return 0;
}

/* "app cart.c:88" is file cart.c, line 88; "libc.so.6" is a file without one. */
static void split_module(const char *module, const char **ret_file, size_t *ret_len,
			 uint32_t *ret_line)
{
	const char *file = strrchr(module, ' ');
	const char *colon = file ? strrchr(file, ':') : NULL;

	*ret_file = file && colon ? file + 1 : module;
	*ret_len = colon ? (size_t)(colon - *ret_file) : strlen(*ret_file);
	*ret_line = colon ? (uint32_t)strtoul(colon + 1, NULL, 10) : 0;
}

static int place_id(struct profile *p, const struct flame_frame *f, uint32_t *ret)
{
	struct place x;
	const char *file;
	size_t len;

	split_module(f->module, &file, &len, &x.line);
	int err = string_id(p, f->text, f->len, &x.name);

	if (!err)
		err = string_id(p, file, len, &x.file);
	if (err)
		return err;
	/* one function may have many lines: each is a place of its own */
	uint64_t key = map_mix2((uint64_t)x.name << 32 | x.file, x.line);

	for (; (*ret = map_get(&p->place_ids, key)); key++) {
		const struct place *y = &p->places.p[*ret - 1];

		if (y->name == x.name && y->file == x.file && y->line == x.line)
			return 0;
	}
	if (vec_reserve(&p->mem, &p->places, p->places.cnt + 1) ||
	    map_put(&p->mem, &p->place_ids, key, p->places.cnt + 1))
		return -ENOMEM;
	p->places.p[p->places.cnt++] = x;
	*ret = p->places.cnt;
	return 0;
}

static bool same_stack(const struct profile *p, const struct stack *a, const struct stack *b)
{
	return a->cnt == b->cnt && a->cls == b->cls && a->thread == b->thread &&
	       memcmp(p->ids.p + a->first, p->ids.p + b->first, a->cnt * sizeof(*p->ids.p)) == 0;
}

/* Counts @x, whose ids are the last of ids[], which are dropped when the stack is known. */
static int count_stack(struct profile *p, const struct stack *x)
{
	uint64_t key = map_mix2(x->cls, x->thread);
	uint32_t at;

	for (uint32_t i = 0; i < x->cnt; i++)
		key = map_mix2(key, p->ids.p[x->first + i]);
	for (; (at = map_get(&p->stack_ids, key)); key++) {
		struct stack *known = &p->stacks.p[at - 1];

		if (!same_stack(p, known, x))
			continue;
		known->ns += x->ns;
		known->waits += x->waits;
		p->ids.cnt = x->first;
		return 0;
	}
	if (vec_reserve(&p->mem, &p->stacks, p->stacks.cnt + 1) ||
	    map_put(&p->mem, &p->stack_ids, key, p->stacks.cnt + 1))
		return -ENOMEM;
	p->stacks.p[p->stacks.cnt++] = *x;
	return 0;
}

static int add_sample(void *ctx, const struct flame_sample *sample)
{
	struct profile *p = ctx;
	const char *cls = wait_class_name(sample->cls);
	const char *thread = sample->frames[sample->cnt - 1].text;
	struct stack x = { .first = p->ids.cnt, .cnt = sample->cnt, .ns = sample->ns, .waits = 1 };
	int err = vec_reserve(&p->mem, &p->ids, p->ids.cnt + sample->cnt);

	for (uint32_t i = 0; i < sample->cnt && !err; i++) {
		err = place_id(p, &sample->frames[i], &p->ids.p[p->ids.cnt]);
		p->ids.cnt++;
	}
	if (!err)
		err = string_id(p, cls, strlen(cls), &x.cls);
	if (!err)
		err = string_id(p, thread, strlen(thread), &x.thread);
	return err ? err : count_stack(p, &x);
}

/* ---- the message ---- */

static int put_value_type(struct profile *p, const char *type, const char *unit)
{
	uint32_t t, u;
	int err = string_id(p, type, strlen(type), &t);

	if (!err)
		err = string_id(p, unit, strlen(unit), &u);
	if (err)
		return err;
	put_int(&p->part, VALUE_TYPE, t);
	put_int(&p->part, VALUE_UNIT, u);
	put_msg(&p->out, PROFILE_SAMPLE_TYPE, &p->part);
	return 0;
}

static void put_label(struct profile *p, uint32_t key, uint32_t value)
{
	put_int(&p->inner, LABEL_KEY, key);
	put_int(&p->inner, LABEL_STR, value);
	put_msg(&p->part, SAMPLE_LABEL, &p->inner);
}

static void put_samples(struct profile *p, uint32_t class_key, uint32_t thread_key)
{
	for (uint32_t i = 0; i < p->stacks.cnt; i++) {
		const struct stack *x = &p->stacks.p[i];

		for (uint32_t k = 0; k < x->cnt; k++)
			put_varint(&p->inner, p->ids.p[x->first + k]);
		put_msg(&p->part, SAMPLE_LOCATION, &p->inner);
		put_varint(&p->inner, x->ns);
		put_varint(&p->inner, x->waits);
		put_msg(&p->part, SAMPLE_VALUE, &p->inner);
		put_label(p, class_key, x->cls);
		put_label(p, thread_key, x->thread);
		put_msg(&p->out, PROFILE_SAMPLE, &p->part);
	}
}

static void put_places(struct profile *p)
{
	for (uint32_t i = 0; i < p->places.cnt; i++) {
		put_int(&p->part, LOCATION_ID, i + 1);
		put_int(&p->inner, LINE_FUNCTION, i + 1);
		put_int(&p->inner, LINE_NUMBER, p->places.p[i].line);
		put_msg(&p->part, LOCATION_LINE, &p->inner);
		put_msg(&p->out, PROFILE_LOCATION, &p->part);
	}
	for (uint32_t i = 0; i < p->places.cnt; i++) {
		const struct place *x = &p->places.p[i];

		put_int(&p->part, FUNCTION_ID, i + 1);
		put_int(&p->part, FUNCTION_NAME, x->name);
		put_int(&p->part, FUNCTION_SYSTEM_NAME, x->name);
		put_int(&p->part, FUNCTION_FILE, x->file);
		put_msg(&p->out, PROFILE_FUNCTION, &p->part);
	}
}

static void put_strings(struct profile *p)
{
	put_block(&p->out, PROFILE_STRING, NULL, 0);
	for (uint32_t i = 0; i < p->strings.cnt; i++) {
		const char *text = strpool_str(&p->pool, p->strings.p[i]);

		put_block(&p->out, PROFILE_STRING, text, strlen(text));
	}
}

static int make_profile(struct profile *p, const struct snapshot *s)
{
	uint32_t class_key, thread_key;
	int err = put_value_type(p, "critical_wait", "nanoseconds");

	if (!err)
		err = put_value_type(p, "waits", "count");
	if (!err)
		err = string_id(p, "class", 5, &class_key);
	if (!err)
		err = string_id(p, "thread", 6, &thread_key);
	if (!err)
		err = flame_each(s, add_sample, p);
	if (err)
		return err;
	put_samples(p, class_key, thread_key);
	put_places(p);
	put_strings(p);
	put_int(&p->out, PROFILE_TIME, s->now_ns - s->window_ns + (uint64_t)s->realtime_off_ns);
	put_int(&p->out, PROFILE_DURATION, s->window_ns);
	put_int(&p->out, PROFILE_DEFAULT_TYPE, 1); /* the first string: critical_wait */
	return p->out.err;
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
	struct profile *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	int err = make_profile(p, s);

	if (!err)
		err = write_gzip(&p->out, out);
	strpool_done(&p->pool);
	map_done(&p->mem, &p->string_ids);
	map_done(&p->mem, &p->place_ids);
	map_done(&p->mem, &p->stack_ids);
	vec_done(&p->mem, &p->strings);
	vec_done(&p->mem, &p->places);
	vec_done(&p->mem, &p->ids);
	vec_done(&p->mem, &p->stacks);
	msg_done(&p->out);
	msg_done(&p->part);
	msg_done(&p->inner);
	free(p);
	return err;
}
