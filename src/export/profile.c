/* SPDX-License-Identifier: Apache-2.0 */
#include "profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "confidence.h"
#include "flame.h"
#include "snap_text.h"

int profile_add_string(struct profile *p, const char *text, size_t len, uint32_t *ret)
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

const char *profile_string(const struct profile *p, uint32_t id)
{
	return id ? strpool_str(&p->pool, p->strings.p[id - 1]) : "";
}

static int add_text(struct profile *p, const char *text, uint32_t *ret)
{
	return profile_add_string(p, text, strlen(text), ret);
}

/* "app cart.c:88" is file cart.c, line 88; "libc.so.6" is a file without one. */
static void split_module(const char *module, const char **ret_file, size_t *ret_len,
			 uint32_t *ret_line)
{
	const char *file = strchr(module, ' ');
	const char *colon = file ? strrchr(file, ':') : NULL;

	*ret_file = file && colon ? file + 1 : module;
	*ret_len = colon ? (size_t)(colon - *ret_file) : strlen(*ret_file);
	*ret_line = colon ? (uint32_t)strtoul(colon + 1, NULL, 10) : 0;
}

static int add_function(struct profile *p, struct prof_function x, uint32_t *ret)
{
	uint64_t key = map_mix2(x.name, x.file);

	for (; (*ret = map_get(&p->function_ids, key)); key++) {
		const struct prof_function *y = &p->functions.p[*ret - 1];

		if (y->name == x.name && y->file == x.file)
			return 0;
	}
	if (vec_reserve(&p->mem, &p->functions, p->functions.cnt + 1) ||
	    map_put(&p->mem, &p->function_ids, key, p->functions.cnt + 1))
		return -ENOMEM;
	p->functions.p[p->functions.cnt++] = x;
	*ret = p->functions.cnt;
	return 0;
}

static int add_line(struct profile *p, const struct flame_frame *f)
{
	struct prof_function fn;
	struct prof_line x;
	const char *file;
	size_t len;

	split_module(f->module, &file, &len, &x.line);
	int err = profile_add_string(p, f->text, f->len, &fn.name) ?:
		  profile_add_string(p, file, len, &fn.file) ?:
		  add_function(p, fn, &x.function) ?:
		  vec_reserve(&p->mem, &p->lines, p->lines.cnt + 1);

	if (!err)
		p->lines.p[p->lines.cnt++] = x;
	return err;
}

/* One file at one place is one mapping, in however many processes. */
static int add_mapping(struct profile *p, const struct snapshot *s, const struct snap_mapping *m,
		       uint32_t *ret)
{
	struct prof_mapping x = { .start = m->start, .end = m->end, .file_off = m->file_off };
	int err = add_text(p, snapshot_str(s, m->path), &x.file)
			  ?: add_text(p, snapshot_str(s, m->build_id), &x.build_id);
	uint64_t key = map_mix2(map_mix2(x.start, x.file_off), map_mix2(x.file, x.build_id));

	if (err)
		return err;
	for (; (*ret = map_get(&p->mapping_ids, key)); key++) {
		const struct prof_mapping *y = &p->mappings.p[*ret - 1];

		if (y->start == x.start && y->end == x.end && y->file_off == x.file_off &&
		    y->file == x.file && y->build_id == x.build_id)
			return 0;
	}
	if (vec_reserve(&p->mem, &p->mappings, p->mappings.cnt + 1) ||
	    map_put(&p->mem, &p->mapping_ids, key, p->mappings.cnt + 1))
		return -ENOMEM;
	p->mappings.p[p->mappings.cnt++] = x;
	*ret = p->mappings.cnt;
	return 0;
}

static bool same_location(const struct profile *p, const struct prof_location *a,
			  const struct prof_location *b)
{
	return a->address == b->address && a->mapping == b->mapping && a->cnt == b->cnt &&
	       memcmp(p->lines.p + a->first, p->lines.p + b->first, a->cnt * sizeof(*p->lines.p)) ==
		       0;
}

/* The location of @f[0 .. @cnt), which are one address. */
static int add_location(struct profile *p, const struct snapshot *s, const struct flame_frame *f,
			uint32_t cnt, uint32_t *ret)
{
	struct prof_location x = { .address = f->ip, .first = p->lines.cnt, .cnt = cnt };
	int err = f->mapping ? add_mapping(p, s, f->mapping, &x.mapping) : 0;

	for (uint32_t i = 0; i < cnt && !err; i++)
		err = add_line(p, &f[i]);
	if (err)
		return err;
	uint64_t key = map_mix2(x.address, x.mapping);

	for (uint32_t i = 0; i < cnt; i++)
		key = map_mix2(key, (uint64_t)p->lines.p[x.first + i].function << 32 |
					    p->lines.p[x.first + i].line);
	for (; (*ret = map_get(&p->location_ids, key)); key++) {
		if (same_location(p, &p->locations.p[*ret - 1], &x)) {
			p->lines.cnt = x.first;
			return 0;
		}
	}
	if (vec_reserve(&p->mem, &p->locations, p->locations.cnt + 1) ||
	    map_put(&p->mem, &p->location_ids, key, p->locations.cnt + 1))
		return -ENOMEM;
	p->locations.p[p->locations.cnt++] = x;
	*ret = p->locations.cnt;
	return 0;
}

static bool same_sample(const struct profile *p, const struct prof_sample *a,
			const struct prof_sample *b)
{
	return a->cnt == b->cnt && memcmp(a->label, b->label, sizeof(a->label)) == 0 &&
	       memcmp(p->ids.p + a->first, p->ids.p + b->first, a->cnt * sizeof(*p->ids.p)) == 0;
}

/* Counts @x, whose ids are the last of ids[], which are dropped when the stack is known. */
static int count_sample(struct profile *p, const struct prof_sample *x)
{
	uint64_t key = x->cnt;
	uint32_t at;

	for (uint32_t i = 0; i < PROF_LABEL_CNT; i++)
		key = map_mix2(key, x->label[i]);
	for (uint32_t i = 0; i < x->cnt; i++)
		key = map_mix2(key, p->ids.p[x->first + i]);
	for (; (at = map_get(&p->sample_ids, key)); key++) {
		struct prof_sample *known = &p->samples.p[at - 1];

		if (!same_sample(p, known, x))
			continue;
		known->ns += x->ns;
		known->waits += x->waits;
		p->ids.cnt = x->first;
		return 0;
	}
	if (vec_reserve(&p->mem, &p->samples, p->samples.cnt + 1) ||
	    map_put(&p->mem, &p->sample_ids, key, p->samples.cnt + 1))
		return -ENOMEM;
	p->samples.p[p->samples.cnt++] = *x;
	return 0;
}

struct building {
	struct profile *p;
	const struct snapshot *s;
};

static int add_labels(const struct building *b, const struct flame_sample *f, uint32_t *label)
{
	struct snap_text task = snap_task_text(b->s, &f->piece->task);
	char letter[2] = { confidence_letter(f->piece->p.confidence), '\0' };

	return add_text(b->p, snapshot_str(b->s, f->request->id_text), &label[PROF_REQUEST]) ?:
	       add_text(b->p, wait_class_name(f->cls), &label[PROF_CLASS]) ?:
	       add_text(b->p, letter, &label[PROF_CONFIDENCE]) ?:
	       add_text(b->p, task.s, &label[PROF_TASK]);
}

static int add_sample(void *ctx, const struct flame_sample *f)
{
	const struct building *b = ctx;
	struct profile *p = b->p;
	struct prof_sample x = { .first = p->ids.cnt,
				 .request = (uint32_t)(f->request - b->s->requests),
				 .ns = f->ns,
				 .waits = 1 };
	int err = vec_reserve(&p->mem, &p->ids, p->ids.cnt + f->cnt);

	for (uint32_t i = 0, cnt; i < f->cnt && !err; i += cnt) {
		cnt = 1;
		while (f->frames[i + cnt - 1].inlined && i + cnt < f->cnt)
			cnt++;
		err = add_location(p, b->s, &f->frames[i], cnt, &p->ids.p[p->ids.cnt]);
		p->ids.cnt++;
	}
	x.cnt = p->ids.cnt - x.first;
	return err ?: add_labels(b, f, x.label) ?: count_sample(p, &x);
}

/* Readers take the first mapping for the program that was measured. */
static void program_first(struct profile *p)
{
	uint32_t i = 0;

	for (; i < p->mappings.cnt; i++) {
		const char *file = profile_string(p, p->mappings.p[i].file);

		if (*file == '/' && !strstr(file, ".so"))
			break;
	}
	if (!i || i == p->mappings.cnt)
		return;
	struct prof_mapping x = p->mappings.p[0];

	p->mappings.p[0] = p->mappings.p[i];
	p->mappings.p[i] = x;
	for (uint32_t k = 0; k < p->locations.cnt; k++) {
		uint32_t *m = &p->locations.p[k].mapping;

		*m = *m == 1 ? i + 1 : *m == i + 1 ? 1 : *m;
	}
}

int profile_build(const struct snapshot *s, struct profile *ret)
{
#define X(id, name) name,
	static const char *const labels[] = { PROF_LABELS(X) };
#undef X
	struct building b = { ret, s };
	int err;

	memset(ret, 0, sizeof(*ret));
	strpool_init(&ret->pool);
	err = add_text(ret, "critical_wait", &ret->type[0]) ?:
	      add_text(ret, "nanoseconds", &ret->unit[0]) ?:
	      add_text(ret, "waits", &ret->type[1]) ?:
	      add_text(ret, "count", &ret->unit[1]);
	for (uint32_t i = 0; i < PROF_LABEL_CNT && !err; i++)
		err = add_text(ret, labels[i], &ret->label_name[i]);
	if (!err)
		err = flame_each(s, add_sample, &b);
	if (!err)
		program_first(ret);
	return err;
}

void profile_done(struct profile *p)
{
	strpool_done(&p->pool);
	map_done(&p->mem, &p->string_ids);
	map_done(&p->mem, &p->function_ids);
	map_done(&p->mem, &p->location_ids);
	map_done(&p->mem, &p->mapping_ids);
	map_done(&p->mem, &p->sample_ids);
	vec_done(&p->mem, &p->strings);
	vec_done(&p->mem, &p->functions);
	vec_done(&p->mem, &p->lines);
	vec_done(&p->mem, &p->locations);
	vec_done(&p->mem, &p->mappings);
	vec_done(&p->mem, &p->ids);
	vec_done(&p->mem, &p->samples);
}
