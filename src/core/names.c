/* SPDX-License-Identifier: Apache-2.0 */
#include "names.h"
#include "decode.h"
#include "fmt.h"

#include <errno.h>
#include <string.h>

#define NOTES_MAX 64
#define TARGETS_MAX 4096
#define MODULE_STEPS 32

void names_init(struct names *n, struct mem *mem, size_t limit)
{
	*n = (struct names){ .mem = mem, .limit = limit };
}

void names_done(struct names *n)
{
	vec_done(n->mem, &n->text);
	vec_done(n->mem, &n->ips);
	vec_done(n->mem, &n->stacks);
	vec_done(n->mem, &n->texts);
	vec_done(n->mem, &n->modules);
	vec_done(n->mem, &n->targets);
	vec_done(n->mem, &n->notes);
	map_done(n->mem, &n->by_stack);
	map_done(n->mem, &n->by_text);
}

static bool is_full(struct names *n, size_t more)
{
	size_t used = n->text.cap + n->ips.cap * sizeof(uint64_t) +
		      n->stacks.cap * sizeof(*n->stacks.p) + n->texts.cap * sizeof(*n->texts.p) +
		      n->modules.cap * sizeof(*n->modules.p);

	if (used + more <= n->limit)
		return false;
	n->refused++;
	return true;
}

/* Keeps @len bytes and a NUL. */
static int keep_text(struct names *n, const char *s, size_t len, uint32_t *ret)
{
	int err = vec_reserve(n->mem, &n->text, (size_t)n->text.cnt + len + 1);

	if (err)
		return err;
	*ret = n->text.cnt;
	memcpy(n->text.p + n->text.cnt, s, len);
	n->text.cnt += (uint32_t)len;
	n->text.p[n->text.cnt++] = '\0';
	return 0;
}

static const struct name_stack *find_stack(const struct names *n, uint64_t key)
{
	uint32_t i = map_get(&n->by_stack, key);

	return i ? &n->stacks.p[i - 1] : NULL;
}

int names_stack(struct names *n, const struct cc_rec_stack *r)
{
	int err;

	if (!r->key)
		return -EINVAL;
	if (find_stack(n, r->key) || is_full(n, r->h.size))
		return 0;
	err = vec_reserve(n->mem, &n->ips, (size_t)n->ips.cnt + r->h.aux) ?:
	      vec_reserve(n->mem, &n->stacks, n->stacks.cnt + 1) ?:
	      map_put(n->mem, &n->by_stack, r->key, n->stacks.cnt + 1);
	if (err)
		return err;
	n->stacks.p[n->stacks.cnt++] = (struct name_stack){
		.key = r->key,
		.first = n->ips.cnt,
		.cnt = r->h.aux,
		.tgid = r->tgid,
		.flags = r->h.flags,
		.gen = r->gen,
	};
	for (uint32_t i = 0; i < r->h.aux; i++)
		n->ips.p[n->ips.cnt++] = r->ip[i];
	return 0;
}

bool names_get_stack(const struct names *n, uint64_t key, struct engine_stack *ret)
{
	const struct name_stack *s = key ? find_stack(n, key) : NULL;

	if (!s)
		return false;
	*ret = (struct engine_stack){
		.tgid = s->tgid,
		.flags = s->flags,
		.gen = s->gen,
		.cnt = s->cnt,
		.ip = n->ips.p + s->first,
	};
	return true;
}

static uint64_t text_key(uint32_t kind, uint64_t id, uint64_t id2, uint32_t tgid)
{
	/* those of a frame hang together: of its generations one is looked for */
	return map_mix2(map_mix2(id, kind == CC_NAME_FRAME ? 0 : id2), (uint64_t)kind << 32 | tgid);
}

/* The name of a frame as it was in generation @gen. */
static const struct name_text *find_frame(const struct names *n, uint64_t ip, uint32_t tgid,
					  uint64_t gen)
{
	const struct name_text *best = NULL;
	uint32_t i = map_get(&n->by_text, text_key(CC_NAME_FRAME, ip, 0, tgid));

	for (; i; i = n->texts.p[i - 1].next) {
		const struct name_text *t = &n->texts.p[i - 1];

		if (t->kind == CC_NAME_FRAME && t->id == ip && t->tgid == tgid && t->id2 <= gen &&
		    (!best || t->id2 > best->id2))
			best = t;
	}
	return best;
}

static struct name_text *find_text(const struct names *n, uint32_t kind, uint64_t id, uint64_t id2,
				   uint32_t tgid)
{
	uint32_t i = map_get(&n->by_text, text_key(kind, id, id2, tgid));

	for (; i; i = n->texts.p[i - 1].next) {
		struct name_text *t = &n->texts.p[i - 1];

		if (t->kind == kind && t->id == id && t->id2 == id2 && t->tgid == tgid)
			return t;
	}
	return NULL;
}

size_t names_text(const struct names *n, uint32_t kind, uint64_t id, uint64_t id2, uint32_t tgid,
		  char *buf, size_t cap)
{
	const struct name_text *t = find_text(n, kind, id, id2, tgid);

	return t ? fmt_text(buf, cap, "%.*s", (int)t->len[0], n->text.p + t->off) : 0;
}

static bool is_listed(uint32_t kind) { return kind == CC_NAME_HOST || kind == CC_NAME_NOTE; }

static int add_text(struct names *n, const struct cc_rec_name *r)
{
	uint64_t key = text_key(r->h.aux, r->id, r->id2, r->tgid);
	struct name_text t = {
		.id = r->id,
		.id2 = r->id2,
		.kind = r->h.aux,
		.tgid = r->tgid,
		.len = { r->len[0], r->len[1] },
	};
	int err = vec_reserve(n->mem, &n->texts, n->texts.cnt + 1);

	if (!err)
		err = keep_text(n, r->text, (size_t)r->len[0] + r->len[1], &t.off);
	if (err)
		return err;
	if (!is_listed(t.kind)) {
		t.next = map_get(&n->by_text, key);
		err = map_put(n->mem, &n->by_text, key, n->texts.cnt + 1);
		if (err)
			return err;
	}
	n->texts.p[n->texts.cnt++] = t;
	return 0;
}

static bool same_text(const struct names *n, const struct name_text *t, const struct cc_rec_name *r)
{
	return t->len[0] == r->len[0] && t->len[1] == r->len[1] &&
	       !memcmp(n->text.p + t->off, r->text, (size_t)t->len[0] + t->len[1]);
}

int names_name(struct names *n, const struct cc_rec_name *r)
{
	const struct name_text *old;
	uint32_t off;
	int err;

	if (r->h.aux == CC_NAME_NOTE) {
		for (uint32_t i = 0; i < n->notes.cnt; i++)
			if (same_text(n, &n->texts.p[n->notes.p[i]], r))
				return 0;
		if (n->notes.cnt >= NOTES_MAX)
			return 0;
	}
	old = is_listed(r->h.aux) ? NULL : find_text(n, r->h.aux, r->id, r->id2, r->tgid);
	if ((old && same_text(n, old, r)) || is_full(n, r->h.size))
		return 0;
	if (old) { /* it is known better now, or means another thing: the newer text counts */
		struct name_text *t = &n->texts.p[old - n->texts.p];

		if (r->h.aux == CC_NAME_ADDR) { /* which lock was it? */
			t->len[0] = t->len[1] = 0;
			return 0;
		}
		err = keep_text(n, r->text, (size_t)r->len[0] + r->len[1], &off);
		if (err)
			return err;
		t->off = off;
		t->len[0] = r->len[0];
		t->len[1] = r->len[1];
		return 0;
	}
	err = add_text(n, r);
	if (err)
		return err;
	if (r->h.aux == CC_NAME_HOST)
		n->host = n->texts.cnt;
	if (r->h.aux == CC_NAME_NOTE) {
		err = vec_reserve(n->mem, &n->notes, n->notes.cnt + 1);
		if (!err)
			n->notes.p[n->notes.cnt++] = n->texts.cnt - 1;
	}
	return err;
}

/* Behind the last of @tgid that begins at or before @start, and, if just there, in or before @gen.
 */
static uint32_t module_pos(const struct names *n, uint32_t tgid, uint64_t start, uint64_t gen)
{
	uint32_t lo = 0, hi = n->modules.cnt;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		const struct name_module *m = &n->modules.p[mid];

		if (m->tgid < tgid ||
		    (m->tgid == tgid && (m->start < start || (m->start == start && m->gen <= gen))))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

int names_module(struct names *n, const struct cc_rec_module *r)
{
	struct name_module m = {
		.start = r->start,
		.end = r->end,
		.file_off = r->file_off,
		.gen = cc_module_gen(r),
		.tgid = r->tgid,
		.len = (uint32_t)strnlen(r->path, r->path_len),
		.build_id_len = (uint8_t)CC_MIN(r->build_id_len, sizeof(r->build_id)),
	};
	uint32_t i = module_pos(n, m.tgid, m.start, m.gen);
	int err;

	if (r->start >= r->end)
		return -EINVAL;
	memcpy(m.build_id, r->build_id, sizeof(m.build_id));
	if (is_full(n, r->h.size))
		return 0;
	err = vec_reserve(n->mem, &n->modules, n->modules.cnt + 1);
	if (!err)
		err = keep_text(n, r->path, m.len, &m.off);
	if (err)
		return err;
	if (i > 0 && n->modules.p[i - 1].tgid == m.tgid && n->modules.p[i - 1].start == m.start &&
	    n->modules.p[i - 1].gen == m.gen) {
		n->modules.p[i - 1] = m; /* mapped anew at the same address */
		return 0;
	}
	memmove(&n->modules.p[i + 1], &n->modules.p[i], (n->modules.cnt - i) * sizeof(m));
	n->modules.p[i] = m;
	n->modules.cnt++;
	return 0;
}

bool names_get_mapping(const struct names *n, uint32_t i, struct engine_mapping *ret)
{
	if (!i || i > n->modules.cnt)
		return false;
	const struct name_module *m = &n->modules.p[i - 1];

	*ret = (struct engine_mapping){
		.start = m->start,
		.end = m->end,
		.file_off = m->file_off,
		.path = n->text.p + m->off,
		.path_len = m->len,
		.build_id = m->build_id,
		.build_id_len = m->build_id_len,
	};
	return true;
}

/* 1 + index of what was mapped at @ip in generation @gen; 0: nothing is known. What was there
 * before lies close by: under the same start, or beside it if the two only overlap. */
static uint32_t module_at(const struct names *n, uint32_t tgid, uint64_t gen, uint64_t ip)
{
	uint32_t best = 0, i = module_pos(n, tgid, ip, UINT64_MAX);

	for (unsigned int steps = 0; i > 0 && steps < MODULE_STEPS; i--, steps++) {
		const struct name_module *m = &n->modules.p[i - 1];

		if (m->tgid != tgid)
			break;
		if (ip < m->end && m->gen <= gen && (!best || m->gen > n->modules.p[best - 1].gen))
			best = i;
	}
	return best;
}

bool names_get_frame(const struct names *n, uint32_t tgid, uint32_t gen, uint64_t ip,
		     struct engine_frame *ret)
{
	const struct name_text *t = find_frame(n, ip, tgid, gen);
	uint32_t i = module_at(n, tgid, gen, ip);

	*ret = (struct engine_frame){ .text = "", .module = "" };
	if (i) {
		const struct name_module *m = &n->modules.p[i - 1];
		const char *path = n->text.p + m->off, *slash = strrchr(path, '/');

		ret->module = slash ? slash + 1 : path;
		ret->module_len = strlen(ret->module);
		ret->module_off = ip - m->start + m->file_off;
		ret->mapping = i;
		/* the name is of what was there before, and this has none */
		if (t && t->id2 < m->gen)
			t = NULL;
	}
	if (!t)
		return false;
	ret->named = true;
	ret->text = n->text.p + t->off;
	ret->text_len = t->len[0];
	ret->module = ret->text + t->len[0];
	ret->module_len = t->len[1];
	return true;
}

int names_target(struct names *n, const struct cc_rec_target *r)
{
	struct name_target *t;

	for (uint32_t i = 0; i < n->targets.cnt; i++) {
		if (n->targets.p[i].tgid == r->tgid) {
			memcpy(n->targets.p[i].comm, r->comm, CC_COMM_LEN);
			return 0;
		}
	}
	if (n->targets.cnt >= TARGETS_MAX)
		return 0;
	if (vec_reserve(n->mem, &n->targets, n->targets.cnt + 1))
		return -ENOMEM;
	t = &n->targets.p[n->targets.cnt++];
	*t = (struct name_target){ .tgid = r->tgid, .followed = r->h.flags & CC_TG_FOLLOWED };
	n->followed_cnt += t->followed;
	memcpy(t->comm, r->comm, CC_COMM_LEN);
	return 0;
}

bool names_is_followed(const struct names *n, uint32_t tgid)
{
	for (uint32_t i = 0; n->followed_cnt && i < n->targets.cnt; i++)
		if (n->targets.p[i].tgid == tgid)
			return n->targets.p[i].followed;
	return false;
}
