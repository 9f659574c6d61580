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
 * are others most often come first, so that the set is short. A hash is put down as it is. */
#define FIELDS(NUMBER, HASH)            \
	NUMBER(by_request.id, 0)        \
	NUMBER(by_request.ordinal, 1)   \
	NUMBER(waker_tid, 2)            \
	NUMBER(evidence, 3)             \
	NUMBER(occupant_ns, 4)          \
	NUMBER(occupant_tid, 5)         \
	NUMBER(tid, 6)                  \
	NUMBER(holder_tid, 7)           \
	NUMBER(resource, 8)             \
	HASH(ustack, 9)                 \
	NUMBER(flags, 10)               \
	NUMBER(ended, 11)               \
	NUMBER(waker_kind, 12)          \
	HASH(kstack, 13)                \
	NUMBER(for_request.id, 14)      \
	NUMBER(for_request.ordinal, 15) \
	NUMBER(for_request.kind, 16)    \
	NUMBER(by_request.kind, 17)     \
	HASH(waker_ustack, 18)          \
	HASH(waker_kstack, 19)          \
	NUMBER(goid, 20)                \
	NUMBER(on_tid, 21)              \
	NUMBER(tgid, 22)                \
	NUMBER(waker_tgid, 23)          \
	NUMBER(holder_tgid, 24)         \
	NUMBER(occupant_tgid, 25)       \
	NUMBER(short_ns, 26)            \
	NUMBER(last_tid, 27)            \
	NUMBER(srtt_us, 28)             \
	NUMBER(retrans, 29)             \
	NUMBER(sibling_end, 30)         \
	NUMBER(herd, 31)
#define FIELD_CNT 32
/* These two are as the rest tells, as a rule. */
#define HAS_CONFIDENCE (1ull << FIELD_CNT)
#define HAS_START (2ull << FIELD_CNT)
_Static_assert(FIELD_CNT <= 62, "a set of 64 bits");

/* start, end; depth, class and confidence; the rest is in the table */
_Static_assert(sizeof(struct cc_piece) == 184, "a new member of a piece is to be packed too");

#define PIECE_MOST (1 + (2 + 3 + FIELD_CNT) * 10) /* bytes */

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

#define X(name, nr) set |= (uint64_t)(p->name != base->name) << (nr);
	FIELDS(X, X)
#undef X
	return set;
}

static uint8_t *put_hash(uint8_t *to, uint64_t v)
{
	memcpy(to, &v, sizeof(v));
	return to + sizeof(v);
}

static uint8_t *put_field(uint8_t *to, const struct cc_piece *p, int nr)
{
	switch (nr) {
#define NUMBER(name, nr) \
	case nr:         \
		return put_varint(to, p->name);
#define HASH(name, nr) \
	case nr:       \
		return put_hash(to, p->name);
		FIELDS(NUMBER, HASH)
#undef NUMBER
#undef HASH
	default:
		return to;
	}
}

/* A path's pieces lie one after the other, and what is within one begins with it. */
static cc_ns start_after(const struct cc_piece *prev, uint16_t depth)
{
	return depth > prev->depth ? prev->start : prev->end;
}

/* The same evidence makes the same confidence. */
static uint8_t likely_confidence(const struct cc_piece *p, const struct cc_piece *base)
{
	return p->evidence == base->evidence ? base->confidence : evidence_confidence(p->evidence);
}

static uint8_t *pack_piece(uint8_t *to, const struct cc_piece *p, const struct cc_piece *prev,
			   const struct cc_piece *base)
{
	uint64_t set = changed(p, base);
	bool moves = p->depth != prev->depth;

	if (p->confidence != likely_confidence(p, base))
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
	for (set &= HAS_CONFIDENCE - 1; set; set &= set - 1)
		to = put_field(to, p, __builtin_ctzll(set));
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

static uint64_t get_hash(const uint8_t **from)
{
	uint64_t v;

	memcpy(&v, *from, sizeof(v));
	*from += sizeof(v);
	return v;
}

static void get_field(const uint8_t **from, struct cc_piece *p, int nr)
{
	switch (nr) {
#define NUMBER(name, nr)                                         \
	case nr:                                                 \
		p->name = (__typeof__(p->name))get_varint(from); \
		break;
#define HASH(name, nr)                    \
	case nr:                          \
		p->name = get_hash(from); \
		break;
		FIELDS(NUMBER, HASH)
#undef NUMBER
#undef HASH
	default:
		break;
	}
}

/* *@p is as its base, and may be the piece before it. */
static const uint8_t *unpack_piece(const uint8_t *from, const struct cc_piece *prev,
				   struct cc_piece *p)
{
	bool moves = *from++ & DEEPER_OR_NOT;
	uint64_t set = get_varint(&from);
	const struct cc_piece base = { .evidence = p->evidence, .confidence = p->confidence };
	uint16_t depth = moves ? (uint16_t)get_varint(&from) : prev->depth;

	if (set & HAS_CONFIDENCE)
		p->confidence = *from++;
	p->start = set & HAS_START ? get_varint(&from) : start_after(prev, depth);
	p->depth = depth;
	p->end = p->start + get_varint(&from);
	for (uint64_t left = set & (HAS_CONFIDENCE - 1); left; left &= left - 1)
		get_field(&from, p, __builtin_ctzll(left));
	if (!(set & HAS_CONFIDENCE))
		p->confidence = likely_confidence(p, &base);
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

void path_iter_init(struct path_iter *it, const struct cc_request *r)
{
	it->left = r->path || r->kept ? r->path_cnt : 0;
	it->path = r->path;
	it->met = 0;
	if (!it->left || it->path)
		return;
	it->from = pieces_of(r->kept);
	it->first = (struct cc_piece){ .start = r->kept->start, .end = r->kept->start };
	it->prev = &it->first;
}

const struct cc_piece *path_iter_next(struct path_iter *it)
{
	if (!it->left)
		return NULL;
	it->left--;
	if (it->path)
		return it->path++;
	unsigned int cls = *it->from & CLASS_MASK;
	struct cc_piece *p = &it->last[cls];

	if (!(it->met & 1ull << cls))
		*p = (struct cc_piece){ .cls = (uint8_t)cls };
	it->met |= 1ull << cls;
	it->from = unpack_piece(it->from, it->prev, p);
	return it->prev = p;
}

const struct cc_piece *request_path(const struct cc_request *r, struct path_buf *buf)
{
	static const struct cc_piece nothing;

	if (r->path)
		return r->path;
	if (!r->kept || !r->path_cnt)
		return &nothing;
	if (r->path_cnt > buf->cap) {
		size_t cap = CC_MAX(r->path_cnt + r->path_cnt / 2, 64u);

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
