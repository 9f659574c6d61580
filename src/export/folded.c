/* SPDX-License-Identifier: Apache-2.0 */
#include "folded.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "flame.h"
#include "mem.h"

struct line {
	char *stack;
	cc_ns ns;
};

struct folded {
	struct mem mem;
	VEC(struct line) lines;
};

/* A ';' in a name would be a frame of its own. */
static void put_frame(FILE *f, const struct flame_frame *x)
{
	for (uint32_t i = 0; i < x->len; i++)
		fputc(x->text[i] == ';' ? ':' : x->text[i], f);
}

static char *stack_of(const struct flame_sample *x)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return NULL;
	for (uint32_t i = x->cnt; i-- > 0;) {
		put_frame(f, &x->frames[i]);
		fputc(';', f);
	}
	fprintf(f, "[%s]", wait_class_name(x->cls));
	if (fclose(f)) {
		free(text);
		return NULL;
	}
	return text;
}

static int add(void *ctx, const struct flame_sample *x)
{
	struct folded *f = ctx;
	char *stack = vec_reserve(&f->mem, &f->lines, f->lines.cnt + 1) ? NULL : stack_of(x);

	if (!stack)
		return -ENOMEM;
	f->lines.p[f->lines.cnt++] = (struct line){ stack, x->ns };
	return 0;
}

static int by_stack(const void *a, const void *b)
{
	return strcmp(((const struct line *)a)->stack, ((const struct line *)b)->stack);
}

static void write_lines(const struct folded *f, FILE *out)
{
	cc_ns ns = 0;

	for (uint32_t i = 0; i < f->lines.cnt; i++) {
		const struct line *l = &f->lines.p[i];

		ns += l->ns;
		if (i + 1 < f->lines.cnt && strcmp(l->stack, l[1].stack) == 0)
			continue;
		if (ns)
			fprintf(out, "%s %" PRIu64 "\n", l->stack, ns);
		ns = 0;
	}
}

int folded_write(const struct snapshot *s, FILE *out)
{
	struct folded f = { 0 };
	int err = flame_each(s, add, &f);

	if (!err && f.lines.cnt) {
		qsort(f.lines.p, f.lines.cnt, sizeof(*f.lines.p), by_stack);
		write_lines(&f, out);
	}
	for (uint32_t i = 0; i < f.lines.cnt; i++)
		free(f.lines.p[i].stack);
	vec_done(&f.mem, &f.lines);
	return err ? err : ferror(out) ? -EIO : 0;
}
