/* SPDX-License-Identifier: Apache-2.0 */
#include "flame.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "digest.h"
#include "snap_text.h"

struct flame {
	const struct snapshot *s;
	struct flame_sample sample;
	char texts[CC_LEAF_DEPTH + 2][FLAME_TEXT]; /* of the "[...]" frames */
	uint32_t text_cnt;
};

/* Without the offset in a named function. "libc.so.6+0x8a1b2" has no name: there the offset is all
 * that tells it from others. */
static uint32_t name_len(const char *text, const char *module)
{
	const char *plus = strstr(text, "+0x");
	size_t len = plus ? (size_t)(plus - text) : strlen(text);

	if (plus && !strncmp(text, module, len))
		len = strlen(text);
	return (uint32_t)len;
}

static void put_frame(struct flame *f, struct flame_frame x)
{
	if (f->sample.cnt < FLAME_FRAMES)
		f->sample.frames[f->sample.cnt++] = x;
}

static void add_text(struct flame *f, const char *text)
{
	put_frame(f, (struct flame_frame){
			     .text = text, .len = (uint32_t)strlen(text), .module = "" });
}

void flame_frame_of(const struct snapshot *s, const struct snap_frame *x, struct flame_frame *ret)
{
	const char *text = snapshot_str(s, x->text), *module = snapshot_str(s, x->module);
	bool mapped = x->mapping && x->mapping <= s->mapping_cnt;

	*ret = (struct flame_frame){ .text = text,
				     .len = name_len(text, module),
				     .module = module,
				     .ip = x->ip,
				     .mapping = mapped ? &s->mappings[x->mapping - 1] : NULL,
				     .inlined = x->inlined };
}

static char *next_text(struct flame *f)
{
	uint32_t i = f->text_cnt < ARRAY_SIZE(f->texts) - 1 ? f->text_cnt++ : f->text_cnt;

	return f->texts[i];
}

static void add_stack(struct flame *f, uint32_t stack)
{
	const struct snapshot *s = f->s;

	if (!stack || stack > s->stack_cnt)
		return;
	const struct snap_stack *st = &s->stacks[stack - 1];

	for (uint32_t i = 0; i < st->cnt && st->first + i < s->frame_cnt; i++) {
		struct flame_frame x;

		flame_frame_of(s, &s->frames[st->first + i], &x);
		put_frame(f, x);
	}
}

/* The frames of @p: its stacks, or its class where there is none. */
static void add_piece(struct flame *f, const struct snap_piece *p)
{
	if (!p->stack && !p->kstack) {
		char *text = next_text(f);

		snprintf(text, FLAME_TEXT, "[%s]", wait_class_name(p->p.cls));
		add_text(f, text);
	}
	add_stack(f, p->kstack);
	add_stack(f, p->stack);
}

/* Between a piece and the one around it: what the outer one waited for. */
static void add_marker(struct flame *f, const struct snap_piece *outer,
		       const struct snap_piece *inner)
{
	char *text = next_text(f);

	snprintf(text, FLAME_TEXT, "[%s: waits for %s]", wait_class_name(outer->p.cls),
		 snap_task_text(f->s, &inner->task).s);
	add_text(f, text);
}

static void make_sample(struct flame *f, const struct snap_piece *all, const struct leaf_iter *it)
{
	uint32_t depth = CC_MIN(all[it->known].p.depth, CC_LEAF_DEPTH - 1u);
	char *root;

	f->sample.cnt = f->text_cnt = 0;
	f->sample.piece = &all[it->known];
	f->sample.cls = all[it->known].p.cls;
	f->sample.ns = piece_ns(&all[it->leaf].p);
	add_piece(f, &all[it->known]);
	for (uint32_t d = depth; d-- > 0;) {
		add_marker(f, &all[it->at[d]], &all[it->at[d + 1]]);
		add_stack(f, all[it->at[d]].kstack);
		add_stack(f, all[it->at[d]].stack);
	}
	root = next_text(f);
	snprintf(root, FLAME_TEXT, "%s", snap_task_text(f->s, &all[it->top].task).s);
	add_text(f, root);
}

static int each_of_request(struct flame *f, const struct snap_request *r, flame_fn *fn, void *ctx)
{
	const struct snap_piece *all = &f->s->pieces[r->first_piece];
	struct cc_piece *path = malloc((r->piece_cnt + 1) * sizeof(*path));
	struct leaf_iter it;
	int err = 0;

	if (!path)
		return -ENOMEM;
	for (uint32_t i = 0; i < r->piece_cnt; i++)
		path[i] = all[i].p;
	f->sample.request = r;
	for (leaf_iter_init(&it, path, r->piece_cnt); err >= 0 && leaf_iter_next(&it);) {
		make_sample(f, all, &it);
		err = fn(ctx, &f->sample);
	}
	free(path);
	return CC_MIN(err, 0);
}

int flame_each(const struct snapshot *s, flame_fn *fn, void *ctx)
{
	struct flame *f = calloc(1, sizeof(*f));
	int err = f ? 0 : -ENOMEM;

	if (f)
		f->s = s;
	for (uint32_t i = 0; i < s->request_cnt && !err; i++)
		err = each_of_request(f, &s->requests[i], fn, ctx);
	free(f);
	return err;
}
