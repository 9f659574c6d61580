/* SPDX-License-Identifier: Apache-2.0 */
/* Places, resources and stacks of labels.h. */
#include <errno.h>
#include <string.h>

#include "labels.h"
#include "plumbing.h"

/* ---- places ---- */

static cc_str frame_text(struct labels *n, const struct engine_frame *f, uint64_t ip)
{
	const char *base = f->module;
	size_t len = f->module_len;

	if (f->named && f->text_len)
		return strpool_add(&n->pool, f->text, f->text_len);
	if (!base || !len)
		return strpool_addf(&n->pool, "0x%llx", (unsigned long long)ip);
	for (size_t i = len; i > 0; i--) {
		if (base[i - 1] == '/') {
			base += i;
			len -= i;
			break;
		}
	}
	return strpool_addf(&n->pool, "%.*s+0x%llx", (int)CC_MIN(len, 200), base,
			    (unsigned long long)f->module_off);
}

static struct engine_frame frame_of(const struct labels *n, const struct engine_stack *st,
				    uint32_t i)
{
	struct engine_frame f = { 0 };

	f.named = engine_frame(n->e, st->tgid, st->gen, st->ip[i], &f);
	return f;
}

/* The @i-th line of a frame's name: code that was inlined has one before the function it is in.
 * Returns false beyond the last, which is what *ret is then; an unnamed frame has one. */
static bool frame_line(const struct engine_frame *f, uint32_t i, struct engine_frame *ret)
{
	const char *text = f->text, *module = f->module, *nl;
	size_t text_len = f->text_len, module_len = f->module_len;

	*ret = *f;
	for (;; i--) {
		nl = text_len ? memchr(text, '\n', text_len) : NULL;
		ret->text = text;
		ret->text_len = nl ? (size_t)(nl - text) : text_len;
		text_len -= ret->text_len + (nl != NULL);
		text = nl ? nl + 1 : text;
		const char *end = module_len ? memchr(module, '\n', module_len) : NULL;

		ret->module = module;
		ret->module_len = end ? (size_t)(end - module) : module_len;
		module_len -= ret->module_len + (end != NULL);
		module = end ? end + 1 : module;
		if (!i || !nl)
			return !i;
	}
}

static cc_str find_site(struct labels *n, uint64_t ustack)
{
	struct engine_stack st;
	uint32_t pick = 0;

	if (!engine_stack(n->e, ustack, &st) || !st.cnt || st.flags & CC_ST_KERNEL)
		return 0;
	while (pick < st.cnt) {
		struct engine_frame f = frame_of(n, &st, pick), last;

		for (uint32_t i = 0; frame_line(&f, i, &last);)
			i++;
		if (!f.module || (!plumbing_module(f.module, f.module_len) &&
				  !plumbing_function(last.text, last.text_len)))
			break;
		pick++;
	}
	if (pick == st.cnt) /* nothing but plumbing */
		pick = 0;
	struct engine_frame f = frame_of(n, &st, pick), line;

	/* the function that is there, as a symbol table has it: what was inlined is on the stack */
	for (uint32_t i = 0; frame_line(&f, i, &line);)
		i++;
	return frame_text(n, &line, st.ip[pick]);
}

cc_str labels_site(struct labels *n, uint64_t ustack)
{
	uint32_t kept = ustack ? map_get(&n->sites, ustack) : 1;

	if (kept)
		return kept - 1;
	return labels_keep(n, &n->sites, ustack, find_site(n, ustack));
}

cc_str labels_resource(struct labels *n, uint32_t resource)
{
	uint32_t kept = resource ? map_get(&n->resources, resource) : 1;
	char text[STRPOOL_TEXT_MAX];

	if (kept)
		return kept - 1;
	size_t len = engine_resource_name(n->e, resource, text, sizeof(text));

	return labels_keep(n, &n->resources, resource,
			   strpool_add(&n->pool, text, CC_MIN(len, sizeof(text) - 1)));
}

/* ---- stacks ---- */

static cc_str hex_of(struct labels *n, const uint8_t *b, uint32_t len)
{
	static const char digits[] = "0123456789abcdef";
	char text[2 * 24];

	for (uint32_t i = 0; i < len && 2 * i < sizeof(text); i++) {
		text[2 * i] = digits[b[i] >> 4];
		text[2 * i + 1] = digits[b[i] & 15];
	}
	return strpool_add(&n->pool, text, CC_MIN(2 * (size_t)len, sizeof(text)));
}

/* 1 + index in mappings[]; 0: none. */
static uint32_t show_mapping(struct labels *n, uint32_t mapping)
{
	uint32_t kept = mapping ? map_get(&n->mapping_idx, mapping) : 0;
	struct engine_mapping m;

	if (kept || !engine_mapping(n->e, mapping, &m))
		return kept;
	if (vec_reserve(&n->mem, &n->mappings, n->mappings.cnt + 1) ||
	    map_put(&n->mem, &n->mapping_idx, mapping, n->mappings.cnt + 1)) {
		n->err = -ENOMEM;
		return 0;
	}
	n->mappings.p[n->mappings.cnt++] =
		(struct snap_mapping){ .start = m.start,
				       .end = m.end,
				       .file_off = m.file_off,
				       .path = strpool_add(&n->pool, m.path, m.path_len),
				       .build_id = hex_of(n, m.build_id, m.build_id_len) };
	return n->mappings.cnt;
}

static uint32_t add_stack(struct labels *n, const struct engine_stack *st)
{
	uint32_t first = n->frames.cnt;

	for (uint32_t i = 0; i < st->cnt && n->frames.cnt - first < CC_STACK_MAX; i++) {
		struct engine_frame f = frame_of(n, st, i), line;

		for (uint32_t j = 0; frame_line(&f, j, &line); j++) {
			cc_str module = strpool_add(&n->pool, line.module, line.module_len);

			if (!module && st->flags & CC_ST_KERNEL)
				module = strpool_add(&n->pool, "[k]", 3);
			if (vec_reserve(&n->mem, &n->frames, n->frames.cnt + 1)) {
				n->err = -ENOMEM;
				return 0;
			}
			if (j)
				n->frames.p[n->frames.cnt - 1].inlined = true;
			n->frames.p[n->frames.cnt++] =
				(struct snap_frame){ .text = frame_text(n, &line, st->ip[i]),
						     .module = module,
						     .ip = st->ip[i],
						     .mapping = show_mapping(n, f.mapping) };
		}
	}
	if (vec_reserve(&n->mem, &n->stacks, n->stacks.cnt + 1)) {
		n->err = -ENOMEM;
		return 0;
	}
	n->stacks.p[n->stacks.cnt++] =
		(struct snap_stack){ first, n->frames.cnt - first, st->flags };
	return n->stacks.cnt;
}

uint32_t labels_stack(struct labels *n, uint64_t key)
{
	uint32_t kept = key ? map_get(&n->stack_idx, key) : 1;
	struct engine_stack st;

	if (kept)
		return kept - 1;
	return labels_keep(n, &n->stack_idx, key,
			   engine_stack(n->e, key, &st) ? add_stack(n, &st) : 0);
}
