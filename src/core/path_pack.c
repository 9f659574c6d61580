/* SPDX-License-Identifier: Apache-2.0 */
#include "path_pack.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "confidence.h"

struct class_ns {
	cc_ns ns;
	uint8_t cls;
};

struct kept_path {
	uint32_t size; /* of all of it */
	uint32_t class_cnt;
	cc_ns start;
	struct cc_dominant dominant, root;
	struct class_ns in[]; /* classes that have time; then the packed pieces */
};

static const uint8_t *pieces_of(const struct kept_path *k)
{
	return (const uint8_t *)&k->in[k->class_cnt];
}

/* A piece begins with a byte: its class, and whether its depth is another than that of the piece
 * before it. */
#define CLASS_BITS 6
#define CLASS_MASK ((1u << CLASS_BITS) - 1)
#define DEEPER_OR_NOT (1u << CLASS_BITS)
_Static_assert(WAIT_CLASS_CNT <= CLASS_MASK + 1, "a class has six bits");

/* Then which of these follow: those that are not as in the piece of its class before it. Those that
 * are others most often come first, so that the set is short. */
struct field {
	uint8_t off, size;
	bool raw; /* a hash: as it is */
};
#define FIELD(name)                                                                         \
	{                                                                                   \
		offsetof(struct cc_piece, name), sizeof(((struct cc_piece *)NULL)->name), 0 \
	}
#define HASH(name)                                                                          \
	{                                                                                   \
		offsetof(struct cc_piece, name), sizeof(((struct cc_piece *)NULL)->name), 1 \
	}
static const struct field fields[] = {
	FIELD(by_request.id),
	FIELD(by_request.ordinal),
	FIELD(waker_tid),
	FIELD(evidence),
	FIELD(occupant_ns),
	FIELD(occupant_tid),
	FIELD(tid),
	FIELD(holder_tid),
	FIELD(resource),
	HASH(ustack),
	FIELD(flags),
	FIELD(ended),
	FIELD(waker_kind),
	HASH(kstack),
	FIELD(for_request.id),
	FIELD(for_request.ordinal),
	FIELD(for_request.kind),
	FIELD(by_request.kind),
	HASH(waker_ustack),
	HASH(waker_kstack),
	FIELD(goid),
	FIELD(on_tid),
	FIELD(tgid),
	FIELD(waker_tgid),
	FIELD(holder_tgid),
	FIELD(occupant_tgid),
	FIELD(short_ns),
	FIELD(last_tid),
	FIELD(srtt_us),
	FIELD(retrans),
	FIELD(sibling_end),
};
/* These two are as the rest tells, as a rule. */
#define HAS_CONFIDENCE (1ull << ARRAY_SIZE(fields))
#define HAS_START (2ull << ARRAY_SIZE(fields))
_Static_assert(ARRAY_SIZE(fields) <= 62, "a set of 64 bits");

/* start, end; depth, class and confidence; the rest is in the table */
_Static_assert(sizeof(struct cc_piece) == 184, "a new member of a piece is to be packed too");

#define PIECE_MOST (1 + (2 + 3 + ARRAY_SIZE(fields)) * 10) /* bytes */

static uint64_t load(const struct cc_piece *p, struct field f)
{
	const char *at = (const char *)p + f.off;
	uint64_t v = 0;

	/* sizes known to the compiler: plain loads */
	switch (f.size) {
	case 8:
		memcpy(&v, at, 8);
		break;
	case 4:
		memcpy(&v, at, 4);
		break;
	case 2:
		memcpy(&v, at, 2);
		break;
	default:
		memcpy(&v, at, 1);
	}
	return v;
}

static void store(struct cc_piece *p, struct field f, uint64_t v)
{
	char *at = (char *)p + f.off;

	switch (f.size) {
	case 8:
		memcpy(at, &v, 8);
		break;
	case 4:
		memcpy(at, &v, 4);
		break;
	case 2:
		memcpy(at, &v, 2);
		break;
	default:
		memcpy(at, &v, 1);
	}
}

static uint8_t *put_varint(uint8_t *to, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		*to++ = (uint8_t)(v | 0x80);
	*to++ = (uint8_t)v;
	return to;
}

static uint64_t get_varint(const uint8_t **from)
{
	const uint8_t *at = *from;
	uint64_t v = *at & 0x7f;

	for (unsigned int shift = 7; *at++ & 0x80; shift += 7)
		v |= (uint64_t)(*at & 0x7f) << shift;
	*from = at;
	return v;
}

/* ---- in ----------------------------------------------------------------------------------- */

static uint64_t changed(const struct cc_piece *p, const struct cc_piece *base)
{
	uint64_t set = 0;

	for (unsigned int i = 0; i < ARRAY_SIZE(fields); i++)
		set |= (uint64_t)(load(p, fields[i]) != load(base, fields[i])) << i;
	return set;
}

/* A path's pieces lie one after the other, and what is within one begins with it. */
static cc_ns start_after(const struct cc_piece *prev, uint16_t depth)
{
	return depth > prev->depth ? prev->start : prev->end;
}

static uint8_t *pack_piece(uint8_t *to, const struct cc_piece *p, const struct cc_piece *prev,
			   const struct cc_piece *base)
{
	uint64_t set = changed(p, base);
	bool moves = p->depth != prev->depth;

	if (p->confidence != evidence_confidence(p->evidence))
		set |= HAS_CONFIDENCE;
	if (p->start != start_after(prev, p->depth))
		set |= HAS_START;
	*to++ = (uint8_t)(p->cls | (moves ? DEEPER_OR_NOT : 0));
	to = put_varint(to, set);
	if (moves)
		to = put_varint(to, p->depth);
	if (set & HAS_CONFIDENCE)
		*to++ = p->confidence;
	if (set & HAS_START)
		to = put_varint(to, p->start);
	to = put_varint(to, p->end - p->start);
	for (set &= HAS_CONFIDENCE - 1; set; set &= set - 1) {
		struct field f = fields[__builtin_ctzll(set)];
		uint64_t v = load(p, f);

		if (f.raw) {
			memcpy(to, &v, sizeof(v));
			to += sizeof(v);
		} else {
			to = put_varint(to, v);
		}
	}
	return to;
}

static int pack_all(struct mem *mem, struct pack_buf *b, const struct cc_piece *p, uint32_t cnt,
		    cc_ns start)
{
	static const struct cc_piece blank;
	const struct cc_piece first = { .start = start, .end = start }, *prev = &first;
	const struct cc_piece *last[CLASS_MASK + 1] = { NULL };

	b->cnt = 0;
	for (uint32_t i = 0; i < cnt; prev = &p[i++]) {
		const struct cc_piece *base = last[p[i].cls & CLASS_MASK];

		if (vec_reserve(mem, b, b->cnt + PIECE_MOST))
			return -1;
		b->cnt = (uint32_t)(pack_piece(b->p + b->cnt, &p[i], prev, base ? base : &blank) -
				    b->p);
		last[p[i].cls & CLASS_MASK] = &p[i];
	}
	return 0;
}

struct kept_path *path_pack(struct mem *mem, struct pack_buf *scratch, const struct cc_piece *p,
			    uint32_t cnt, cc_ns start, const struct cc_found *found)
{
	struct kept_path *k;
	uint32_t classes = 0;
	size_t size;

	if (pack_all(mem, scratch, p, cnt, start))
		return NULL;
	for (unsigned int c = 0; c < WAIT_CLASS_CNT; c++)
		classes += found->class_ns[c] != 0;
	size = sizeof(*k) + classes * sizeof(k->in[0]) + scratch->cnt;
	k = size <= UINT32_MAX ? mem_get(mem, size) : NULL;
	if (!k)
		return NULL;
	k->size = (uint32_t)size;
	k->class_cnt = 0;
	k->start = start;
	k->dominant = found->dominant;
	k->root = found->root;
	for (unsigned int c = 0; c < WAIT_CLASS_CNT; c++)
		if (found->class_ns[c])
			k->in[k->class_cnt++] = (struct class_ns){ found->class_ns[c], (uint8_t)c };
	if (scratch->cnt)
		memcpy((uint8_t *)pieces_of(k), scratch->p, scratch->cnt);
	return k;
}

void path_unkeep(struct mem *mem, struct kept_path *k)
{
	if (k)
		mem_free(mem, k, k->size);
}

/* ---- out ---------------------------------------------------------------------------------- */

static const uint8_t *unpack_piece(const uint8_t *from, const struct cc_piece *prev,
				   struct cc_piece *p)
{
	bool moves = *from++ & DEEPER_OR_NOT;
	uint64_t set = get_varint(&from);
	uint8_t confidence = 0;

	p->depth = moves ? (uint16_t)get_varint(&from) : prev->depth;
	if (set & HAS_CONFIDENCE)
		confidence = *from++;
	p->start = set & HAS_START ? get_varint(&from) : start_after(prev, p->depth);
	p->end = p->start + get_varint(&from);
	for (uint64_t left = set & (HAS_CONFIDENCE - 1); left; left &= left - 1) {
		struct field f = fields[__builtin_ctzll(left)];
		uint64_t v;

		if (f.raw) {
			memcpy(&v, from, sizeof(v));
			from += sizeof(v);
		} else {
			v = get_varint(&from);
		}
		store(p, f, v);
	}
	p->confidence = set & HAS_CONFIDENCE ? confidence : evidence_confidence(p->evidence);
	return from;
}

static void unpack_all(const struct kept_path *k, struct cc_piece *p, uint32_t cnt)
{
	const struct cc_piece first = { .start = k->start, .end = k->start }, *prev = &first;
	const struct cc_piece *last[CLASS_MASK + 1] = { NULL };
	const uint8_t *from = pieces_of(k);

	for (uint32_t i = 0; i < cnt; prev = &p[i++]) {
		unsigned int cls = *from & CLASS_MASK;

		p[i] = last[cls] ? *last[cls] : (struct cc_piece){ .cls = (uint8_t)cls };
		from = unpack_piece(from, prev, &p[i]);
		last[cls] = &p[i];
	}
}

const struct cc_piece *request_path(const struct cc_request *r, struct path_buf *buf)
{
	static const struct cc_piece nothing;

	if (r->path)
		return r->path;
	if (!r->kept || !r->path_cnt)
		return &nothing;
	if (r->path_cnt > buf->cap) {
		size_t cap = CC_MAX(r->path_cnt, 64u);

		free(buf->p);
		buf->p = malloc(cap * sizeof(*buf->p));
		buf->cap = buf->p ? (uint32_t)cap : 0;
	}
	if (buf->p)
		unpack_all(r->kept, buf->p, r->path_cnt);
	return buf->p;
}

void path_buf_done(struct path_buf *buf)
{
	free(buf->p);
	*buf = (struct path_buf){ 0 };
}

const struct cc_found *request_found(const struct cc_request *r, struct cc_found *buf)
{
	const struct kept_path *k = r->kept;

	if (r->found)
		return r->found;
	*buf = (struct cc_found){ 0 };
	if (!k)
		return buf;
	buf->dominant = k->dominant;
	buf->root = k->root;
	for (uint32_t i = 0; i < k->class_cnt; i++)
		buf->class_ns[k->in[i].cls] = k->in[i].ns;
	return buf;
}

const struct cc_dominant *request_dominant(const struct cc_request *r)
{
	static const struct cc_dominant nothing;

	if (r->found)
		return &r->found->dominant;
	return r->kept ? &r->kept->dominant : &nothing;
}

const struct cc_dominant *request_root(const struct cc_request *r)
{
	static const struct cc_dominant nothing;

	if (r->found)
		return &r->found->root;
	return r->kept ? &r->kept->root : &nothing;
}
