/* SPDX-License-Identifier: Apache-2.0 */
#include "go_layout_find.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX (1u << 20)
#define OFFSET_MAX 4096 /* no struct of the runtime that is read is larger */

/* go_offsets.json as it is, NUL-terminated */
__asm__(".section .rodata\n"
	".global go_offsets_json\n"
	"go_offsets_json:\n"
	".incbin \"src/symbol/go_offsets.json\"\n"
	".byte 0\n"
	".previous\n");
extern const char go_offsets_json[];

struct field {
	const char *name;
	size_t at;
	bool optional;
};

static const struct field fields[] = {
#define X(id, type, field, optional) { type "." field, offsetof(struct go_layout, id), optional },
	GO_FIELDS(X)
#undef X
};

static uint32_t *field_of(struct go_layout *l, const struct field *f)
{
	return (uint32_t *)((char *)l + f->at);
}

int go_layout_field(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		if (!strcmp(fields[i].name, name))
			return (int)fields[i].at;
	}
	return -ENOENT;
}

void go_layout_clear(struct go_layout *l)
{
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		*field_of(l, &fields[i]) = GO_NO_FIELD;
}

bool go_layout_whole(const struct go_layout *l)
{
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		uint32_t v = *field_of((struct go_layout *)l, &fields[i]);

		if (v > OFFSET_MAX && !(fields[i].optional && v == GO_NO_FIELD))
			return false;
	}
	return true;
}

static char *read_file(const char *path, int *ret_err)
{
	FILE *f = fopen(path, "re");
	char *text = f ? malloc(FILE_MAX + 1) : NULL;

	*ret_err = f ? -ENOMEM : -errno;
	if (text) {
		size_t n = fread(text, 1, FILE_MAX + 1, f);

		*ret_err = ferror(f) ? -EIO : n > FILE_MAX ? -EFBIG : 0;
		text[*ret_err ? 0 : n] = '\0';
	}
	if (f)
		fclose(f);
	return text;
}

static int take_layout(const cJSON *o, struct go_layout *ret)
{
	go_layout_clear(ret);
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, fields[i].name);

		if (!v && fields[i].optional)
			continue;
		if (!cJSON_IsNumber(v) || v->valuedouble < 0 || v->valuedouble > OFFSET_MAX)
			return (int)i + 1;
		*field_of(ret, &fields[i]) = (uint32_t)v->valuedouble;
	}
	return 0;
}

static unsigned int minor_of(const cJSON *o)
{
	return o->string && !strncmp(o->string, "go1.", 4)
		       ? (unsigned int)strtoul(o->string + 4, NULL, 10)
		       : 0;
}

static int from_json(const cJSON *root, unsigned int minor, struct go_layout *ret, bool *ret_newest,
		     struct cc_err *err)
{
	const cJSON *o, *best = NULL;
	int bad;

	cJSON_ArrayForEach(o, root)
	{
		if (minor_of(o) && minor_of(o) <= minor && (!best || minor_of(o) > minor_of(best)))
			best = o;
	}
	/* an older one is not enough when a newer one is there too */
	cJSON_ArrayForEach(o, root)
	{
		if (best && minor_of(best) != minor && minor_of(o) > minor)
			best = NULL;
	}
	if (!best)
		return -ENOENT;
	*ret_newest = minor_of(best) != minor;
	bad = take_layout(best, ret);
	if (bad)
		snprintf(err->msg, sizeof(err->msg), "go1.%u has no valid \"%s\"", minor_of(best),
			 fields[bad - 1].name);
	return bad ? -EINVAL : 0;
}

int go_layout_table(const char *path, unsigned int minor, struct go_layout *ret,
		    enum go_found *ret_by, struct cc_err *err)
{
	int res = 0;
	char *text = path ? read_file(path, &res) : NULL;
	cJSON *root = res ? NULL : cJSON_Parse(path ? text : go_offsets_json);
	bool newest = false;

	err->pos = -1;
	if (res)
		snprintf(err->msg, sizeof(err->msg), "%s", strerror(-res));
	else if (!cJSON_IsObject(root)) {
		snprintf(err->msg, sizeof(err->msg), "no JSON object");
		res = -EINVAL;
	} else {
		res = from_json(root, minor, ret, &newest, err);
	}
	if (!res)
		*ret_by = newest ? GO_FOUND_NEWEST : path ? GO_FOUND_FILE : GO_FOUND_TABLE;
	cJSON_Delete(root);
	free(text);
	return res;
}
