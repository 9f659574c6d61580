/* SPDX-License-Identifier: Apache-2.0 */
#include "kallsyms.h"
#include "rank.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SYM_MAX (1u << 20)
#define FUNC_BYTES 0x40000 /* kallsyms tells no sizes; beyond this it is a hole, not a function */

struct ksym {
	uint64_t addr;
	uint32_t name;   /* offset in text */
	uint32_t module; /* the same; 0 is "" */
};

struct kallsyms {
	struct ksym *v; /* sorted by address, one of each */
	size_t cnt, cap;
	char *text;
	size_t text_len, text_cap;
};

void kallsyms_free(struct kallsyms *k)
{
	if (!k)
		return;
	free(k->v);
	free(k->text);
	free(k);
}

static int add_text(struct kallsyms *k, const char *s, size_t len, uint32_t *ret)
{
	if (k->text_len + len + 1 > k->text_cap) {
		size_t cap = CC_MAX(k->text_cap * 2, len + 65536);
		char *text = cap <= UINT32_MAX ? realloc(k->text, cap) : NULL;

		if (!text)
			return -ENOMEM;
		k->text = text;
		k->text_cap = cap;
	}
	*ret = (uint32_t)k->text_len;
	memcpy(k->text + k->text_len, s, len);
	k->text[k->text_len + len] = '\0';
	k->text_len += len + 1;
	return 0;
}

static int add_symbol(struct kallsyms *k, uint64_t addr, const char *name, const char *module,
		      size_t module_len)
{
	struct ksym s = { .addr = addr };
	const struct ksym *last = k->cnt ? &k->v[k->cnt - 1] : NULL;
	int err;

	if (k->cnt == k->cap) {
		size_t cap = k->cap ? k->cap * 2 : 4096;
		struct ksym *v = reallocarray(k->v, cap, sizeof(*v));

		if (!v)
			return -ENOMEM;
		last = k->cnt ? &v[k->cnt - 1] : NULL;
		k->v = v;
		k->cap = cap;
	}
	err = add_text(k, name, strlen(name), &s.name);
	/* symbols of one module stand together */
	if (!err && module_len && last && !strncmp(k->text + last->module, module, module_len) &&
	    !k->text[last->module + module_len])
		s.module = last->module;
	else if (!err && module_len)
		err = add_text(k, module, module_len, &s.module);
	if (!err)
		k->v[k->cnt++] = s;
	return err;
}

/* "ffffffff81000000 T name\t[module]". Returns 0 also for a line that is none of ours. */
static int parse_line(struct kallsyms *k, char *line, bool *hidden)
{
	char *end, *name, *module;
	uint64_t addr = strtoull(line, &end, 16);

	if (end == line || end[0] != ' ' || !strchr("tTwW", end[1]) || !end[1] || end[2] != ' ')
		return 0;
	name = end + 3;
	end = name + strcspn(name, "\t \n");
	module = end + strspn(end, "\t [");
	*end = '\0';
	if (!*name)
		return 0;
	if (!addr) {
		*hidden = true;
		return 0;
	}
	return add_symbol(k, addr, name, module, strcspn(module, "]\n"));
}

static int by_addr(const void *a, const void *b, void *text)
{
	const struct ksym *x = a, *y = b;
	uint32_t rx, ry;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	rx = name_rank((char *)text + x->name, 255);
	ry = name_rank((char *)text + y->name, 255);
	return rx < ry ? -1 : rx > ry;
}

static void finish(struct kallsyms *k)
{
	size_t out = 0;

	qsort_r(k->v, k->cnt, sizeof(*k->v), by_addr, k->text);
	for (size_t i = 0; i < k->cnt; i++) {
		if (!i || k->v[i].addr != k->v[out - 1].addr)
			k->v[out++] = k->v[i];
	}
	k->cnt = out;
}

static int read_lines(struct kallsyms *k, FILE *f)
{
	char *line = NULL;
	size_t cap = 0;
	bool hidden = false;
	uint32_t empty;
	int err = add_text(k, "", 0, &empty);

	while (!err && k->cnt < SYM_MAX && getline(&line, &cap, f) > 0)
		err = parse_line(k, line, &hidden);
	free(line);
	if (!err && !k->cnt)
		err = hidden ? -EACCES : -ENOENT;
	return err;
}

int kallsyms_new(const char *path, struct kallsyms **ret)
{
	struct kallsyms *k = calloc(1, sizeof(*k));
	FILE *f = fopen(path, "re");
	int err = !k ? -ENOMEM : !f ? -errno : read_lines(k, f);

	if (f)
		fclose(f);
	if (err) {
		kallsyms_free(k);
		return err;
	}
	finish(k);
	*ret = k;
	return 0;
}

int kallsyms_find(const struct kallsyms *k, uint64_t addr, const char **ret_name,
		  const char **ret_module, uint64_t *ret_off)
{
	size_t lo = 0, hi = k->cnt;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (k->v[mid].addr <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo || addr - k->v[lo - 1].addr >= FUNC_BYTES)
		return -ENOENT;
	*ret_name = k->text + k->v[lo - 1].name;
	*ret_module = k->text + k->v[lo - 1].module;
	*ret_off = addr - k->v[lo - 1].addr;
	return 0;
}

size_t kallsyms_cnt(const struct kallsyms *k) { return k->cnt; }

size_t kallsyms_mem(const struct kallsyms *k)
{
	return sizeof(*k) + k->cap * sizeof(*k->v) + k->text_cap;
}
