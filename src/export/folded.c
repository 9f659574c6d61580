/* SPDX-License-Identifier: Apache-2.0 */
#include "folded.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "flame.h"
#include "mem.h"
#include "snap_text.h"

struct line {
	char *stack;
	cc_ns ns;
};

struct folded {
	const struct snapshot *s;
	bool wakers;
	struct mem mem;
	VEC(struct line) lines;
};

/* A ';' in a name would be a frame of its own. */
static void put_text(FILE *f, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		fputc(text[i] == ';' ? ':' : text[i], f);
}

static void put_waker_stack(FILE *f, const struct snapshot *s, uint32_t stack)
{
	if (!stack || stack > s->stack_cnt)
		return;
	const struct snap_stack *st = &s->stacks[stack - 1];

	for (uint32_t i = 0; i < st->cnt && st->first + i < s->frame_cnt; i++) {
		struct flame_frame x;

		flame_frame_of(s, &s->frames[st->first + i], &x);
		fputc(';', f);
		put_text(f, x.text, x.len);
	}
}

/* Upside down, so that what gave the wake stands next to what it woke. */
static void put_waker(FILE *f, const struct snapshot *s, const struct snap_piece *p)
{
	if (!*snap_waker_name(p->p.waker_kind))
		return;
	const struct snap_text task = snap_waker_text(s, p);

	fputs(";--", f);
	put_waker_stack(f, s, p->waker_kstack);
	put_waker_stack(f, s, p->waker_stack);
	fputc(';', f);
	put_text(f, task.s, strlen(task.s));
}

static char *stack_of(const struct folded *all, const struct flame_sample *x)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return NULL;
	for (uint32_t i = x->cnt; i-- > 0;) {
		put_text(f, x->frames[i].text, x->frames[i].len);
		fputc(';', f);
	}
	fprintf(f, "[%s]", wait_class_name(x->cls));
	if (all->wakers)
		put_waker(f, all->s, x->piece);
	if (fclose(f)) {
		free(text);
		return NULL;
	}
	return text;
}

static int add(void *ctx, const struct flame_sample *x)
{
	struct folded *f = ctx;
	char *stack = vec_reserve(&f->mem, &f->lines, f->lines.cnt + 1) ? NULL : stack_of(f, x);

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

static int write_all(const struct snapshot *s, bool wakers, FILE *out)
{
	struct folded f = { .s = s, .wakers = wakers };
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

int folded_write(const struct snapshot *s, FILE *out) { return write_all(s, false, out); }
int folded_wakers_write(const struct snapshot *s, FILE *out) { return write_all(s, true, out); }
