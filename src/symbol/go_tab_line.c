/* SPDX-License-Identifier: Apache-2.0 */
#include "bytes.h"
#include "go_tab_int.h"

#include <string.h>

#define VALUE_MAX 65536 /* bytes of one table of values */
#define PCDATA_INLINE 2
#define FUNCDATA_INLINE 3
#define NO_DATA UINT32_MAX

/* One number of up to 32 bits, 7 at a time. Returns false at the end of what can be read. */
struct reader { /* of a table of values, piece by piece */
	struct go_tab *t;
	uint64_t at; /* in the table */
	uint32_t left;
	uint8_t buf[64];
	uint8_t pos, cnt;
};

static bool next_byte(struct reader *r, uint8_t *ret)
{
	if (r->pos == r->cnt) {
		uint64_t room = r->at < r->t->funcs ? r->t->funcs - r->at : 0;
		size_t n = CC_MIN(CC_MIN(sizeof(r->buf), room), r->left);

		if (!n || !go_tab_bytes(r->t, r->at, r->buf, n))
			return false;
		r->at += n;
		r->left -= (uint32_t)n;
		r->cnt = (uint8_t)n;
		r->pos = 0;
	}
	*ret = r->buf[r->pos++];
	return true;
}

static bool next_number(struct reader *r, uint32_t *ret)
{
	*ret = 0;
	for (unsigned int shift = 0; shift < 35; shift += 7) {
		uint8_t b;

		if (!next_byte(r, &b))
			return false;
		*ret |= (uint32_t)(b & 0x7f) << shift;
		if (!(b & 0x80))
			return true;
	}
	return false;
}

bool go_tab_value(struct go_tab *t, const struct go_func *fn, uint32_t table, uint64_t pc,
		  int32_t *ret)
{
	struct reader r = { .t = t, .at = t->pcs + table, .left = VALUE_MAX };
	uint64_t at = fn->entry;
	uint32_t value = UINT32_MAX, delta, step;

	if (!table)
		return false;
	/* pairs of (change of the value, how long it holds); the first change may be 0 */
	while (next_number(&r, &delta) && (delta || at == fn->entry) && next_number(&r, &step)) {
		value += (delta & 1) ? ~(delta >> 1) : delta >> 1;
		at += (uint64_t)step * t->quantum;
		if (pc < at) {
			*ret = (int32_t)value;
			return true;
		}
	}
	return false;
}

/* What the runtime knows of these by a number that changes from version to version. */
static uint8_t flags_by_name(struct go_tab *t, const struct go_func *fn)
{
	static const struct {
		const char *name;
		uint8_t flags;
	} special[] = {
		{ "runtime.mcall", GO_FUNC_LEFT },
		{ "runtime.morestack", GO_FUNC_LEFT },
		{ "runtime.clone", GO_FUNC_CLONE },
		{ "runtime.asyncPreempt", GO_FUNC_INJECTED },
		{ "runtime.sigpanic", GO_FUNC_INJECTED },
	};
	char name[24];

	go_tab_name(t, fn->name, name, sizeof(name));
	for (size_t i = 0; i < ARRAY_SIZE(special); i++) {
		if (!strcmp(name, special[i].name))
			return special[i].flags;
	}
	return 0;
}

bool go_tab_frame(struct go_tab *t, uint64_t pc, uint32_t *ret_size, uint8_t *ret_flags)
{
	struct go_frame *c = &t->frames[(pc ^ pc >> 11) % GO_FRAMES];
	struct go_func fn;
	int32_t size;

	if (c->pc != pc) {
		*c = (struct go_frame){ .pc = pc };
		if (go_tab_func(t, pc, &fn)) {
			c->flags = (uint8_t)(fn.flags | flags_by_name(t, &fn));
			c->known = go_tab_value(t, &fn, fn.pcsp, pc, &size) && size >= 0;
			c->size = c->known ? (uint32_t)size : 0;
			c->known |= fn.flags & GO_FUNC_TOP;
		}
	}
	*ret_size = c->size;
	*ret_flags = c->flags;
	return c->known;
}

/* A word of what lies behind the record of @fn. */
static uint32_t data_word(struct go_tab *t, const struct go_func *fn, uint64_t i)
{
	uint32_t v;

	return go_tab_bytes(t, fn->data + i * sizeof(v), &v, sizeof(v)) ? v : NO_DATA;
}

bool go_tab_has_inline(struct go_tab *t, const struct go_func *fn)
{
	uint32_t off;

	if (fn->npcdata <= PCDATA_INLINE || fn->nfuncdata <= FUNCDATA_INLINE)
		return false;
	off = data_word(t, fn, PCDATA_INLINE);
	return off && off != NO_DATA &&
	       data_word(t, fn, (uint64_t)fn->npcdata + FUNCDATA_INLINE) != NO_DATA;
}

bool go_tab_call(struct go_tab *t, const struct go_func *fn, uint32_t i, struct go_call *ret)
{
	struct { /* 1.18: parent and function id, file, line, name, parent pc; 20 bytes */
		uint32_t v[5];
	} r;
	size_t size = t->is_120 ? 16 : 20; /* id, name, parent pc, start line */
	uint64_t at = t->gofunc + data_word(t, fn, (uint64_t)fn->npcdata + FUNCDATA_INLINE);

	if (elf_file_read_at(t->f, at + (uint64_t)i * size, &r, size) != (ssize_t)size)
		return false;
	ret->name = r.v[t->is_120 ? 1 : 3];
	ret->parent_pc = r.v[t->is_120 ? 2 : 4];
	return true;
}

static void place_file(struct go_tab *t, const struct go_func *fn, uint64_t pc,
		       struct go_place *ret)
{
	int32_t index, line;
	uint32_t off;
	uint64_t room = t->pcs - t->files;

	ret->file[0] = '\0';
	ret->line = go_tab_value(t, fn, fn->pcline, pc, &line) && line > 0 ? line : 0;
	if (!go_tab_value(t, fn, fn->pcfile, pc, &index) || index < 0 ||
	    !go_tab_bytes(t, t->cus + ((uint64_t)fn->cu + (uint32_t)index) * sizeof(off), &off,
			  sizeof(off)) ||
	    off >= room)
		return;
	size_t n = CC_MIN(sizeof(ret->file) - 1, room - off);

	ret->file[go_tab_bytes(t, t->files + off, ret->file, n) ? n : 0] = '\0';
}

size_t go_tab_places(struct go_tab *t, uint64_t pc, struct go_place *ret, size_t cap)
{
	struct go_func fn;
	struct go_call c;
	uint32_t table;
	size_t n = 0;
	int32_t i, last = -1;

	if (!cap || !go_tab_func(t, pc, &fn))
		return 0;
	table = t->gofunc && go_tab_has_inline(t, &fn) ? data_word(t, &fn, PCDATA_INLINE) : 0;
	/* the call that @pc was inlined by, then the one that was inlined into, ... */
	while (n + 1 < cap && go_tab_value(t, &fn, table, pc, &i) && i >= 0 && i != last &&
	       go_tab_call(t, &fn, (uint32_t)i, &c) && c.parent_pc < fn.end - fn.entry) {
		go_tab_name(t, c.name, ret[n].name, sizeof(ret[n].name));
		place_file(t, &fn, pc, &ret[n++]);
		pc = fn.entry + c.parent_pc;
		last = i;
	}
	go_tab_name(t, fn.name, ret[n].name, sizeof(ret[n].name));
	place_file(t, &fn, pc, &ret[n++]);
	return n;
}
