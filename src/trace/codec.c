/* SPDX-License-Identifier: Apache-2.0 */
#include "codec.h"

#include <errno.h>
#include <string.h>

void codec_reset(struct codec *c) { memset(c, 0, sizeof(*c)); }

bool codec_can(const struct cc_rec *rec, size_t len)
{
	return len >= sizeof(*rec) && rec->size == len && len % 8 == 0 &&
	       rec->kind != CC_REC_NONE && rec->kind != CC_REC_SNAP;
}

/* ---- varints ---- */

static uint64_t zigzag(uint64_t v) { return v << 1 ^ (v >> 63 ? UINT64_MAX : 0); }

static uint64_t unzigzag(uint64_t v) { return v >> 1 ^ (v & 1 ? UINT64_MAX : 0); }

static uint8_t *put_varint(uint8_t *p, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		*p++ = (uint8_t)(v | 0x80);
	*p++ = (uint8_t)v;
	return p;
}

/* A place to read from. Reading beyond an end gives 0 and sets bad. */
struct in {
	const uint8_t *p, *end;
	const uint8_t *plain, *plain_end;
	bool bad;
};

static uint64_t get_long_varint(struct in *in)
{
	uint64_t v = 0;

	for (unsigned int shift = 0; in->p < in->end && shift < 64; shift += 7) {
		uint8_t b = *in->p++;

		v |= (uint64_t)(b & 0x7f) << shift;
		if (b < 0x80)
			return v;
	}
	in->bad = true;
	return 0;
}

/* From at least eight bytes that are there, as one word: how many there are is hard to foretell. */
static inline uint64_t get_word_varint(struct in *in)
{
	uint64_t w, stop;

	memcpy(&w, in->p, sizeof(w));
	stop = ~w & 0x8080808080808080ull;
	if (!stop)
		return get_long_varint(in);
	in->p += (unsigned int)__builtin_ctzll(stop) / 8 + 1;
	w &= (stop ^ (stop - 1)) & 0x7f7f7f7f7f7f7f7full;
	w = (w & 0x007f007f007f007full) | (w & 0x7f007f007f007f00ull) >> 1;
	w = (w & 0x00003fff00003fffull) | (w & 0x3fff00003fff0000ull) >> 2;
	return (w & 0x000000000fffffffull) | (w & 0x0fffffff00000000ull) >> 4;
}

/* @near: so many bytes are there, whatever comes */
static inline uint64_t get_varint(struct in *in, bool near) /* most are one byte */
{
	if (near)
		return *in->p < 0x80 ? *in->p++ : get_word_varint(in);
	return in->p < in->end && *in->p < 0x80 ? *in->p++ : get_long_varint(in);
}

static inline uint64_t get_time(struct in *in, bool near) /* are not */
{
	return near ? get_word_varint(in) : get_varint(in, false);
}

/* ---- numbers apart ----
 * The low bytes of a time are as good as random: to compress them is in vain and takes most of the
 * time of reading. Apart from the rest they lie as they are, and two bits say how long each is. */

static const uint8_t plain_len[] = { 2, 3, 4, 8 };

static unsigned int plain_how(uint64_t v)
{
	return v <= UINT16_MAX ? 0 : v < 1u << 24 ? 1 : v <= UINT32_MAX ? 2 : 3;
}

/* Writes up to eight bytes, of which those beyond its length are free for what comes next. */
static uint8_t *put_plain(uint8_t *p, uint64_t v)
{
	memcpy(p, &v, sizeof(v));
	return p + plain_len[plain_how(v)];
}

/* @near: eight bytes are there */
static inline uint64_t get_plain(struct in *in, unsigned int how, bool near)
{
	static const uint64_t mask[] = { UINT16_MAX, (1u << 24) - 1, UINT32_MAX, UINT64_MAX };
	uint64_t v = 0;

	if (near) {
		memcpy(&v, in->plain, sizeof(v));
		in->plain += plain_len[how];
		return v & mask[how];
	}
	if (in->plain_end - in->plain < plain_len[how]) {
		in->bad = true;
		return 0;
	}
	memcpy(&v, in->plain, plain_len[how]);
	in->plain += plain_len[how];
	return v;
}

static inline uint8_t get_byte(struct in *in, bool near)
{
	if (near || in->p < in->end)
		return *in->p++;
	in->bad = true;
	return 0;
}

static void get_bytes(struct in *in, void *dst, size_t n)
{
	if ((size_t)(in->end - in->p) < n) {
		in->bad = true;
		memset(dst, 0, n);
		return;
	}
	memcpy(dst, in->p, n);
	in->p += n;
}

/* ---- EPISODE ----
 * tid as difference to the last EPISODE's; a mask of the fields that are not as in the task's last
 * EPISODE (seq: not one more); these fields; then out, wake and in as steps from its last in, which
 * may lie apart: then a byte before the tid says how long each is. Only the first seven bits of the
 * mask are common, so that it is one byte. */

#define EPISODE_FIELDS(X) \
	X(0, h.cpu)       \
	X(1, h.aux)       \
	X(2, state)       \
	X(3, waker_tid)   \
	X(4, key)         \
	X(5, waker_tgid)  \
	X(7, h.flags)     \
	X(8, seq)         \
	X(9, lost)
#define EPISODE_NO_WAKE (1u << 6)

static struct cc_rec_episode *task_slot(struct codec *c, uint32_t tid)
{
	return &c->task[(tid * 0x9e3779b1u) >> 24];
}

/* What is expected next of @tid, in the place where it is remembered. */
static struct cc_rec_episode *expect(struct codec *c, uint32_t tid)
{
	struct cc_rec_episode *e = task_slot(c, tid);

	if (e->tid != tid) {
		memset(e, 0, sizeof(*e));
		e->tid = tid;
		e->h.ts = c->last_in;
	}
	e->seq++;
	e->lost = 0;
	return e;
}

static size_t put_episode(struct codec *c, const struct cc_rec_episode *e, uint8_t *out,
			  uint8_t **plain)
{
	struct cc_rec_episode *x = expect(c, e->tid);
	const uint64_t times[] = { zigzag(e->out - x->h.ts), e->wake ? zigzag(e->wake - e->out) : 0,
				   zigzag(e->h.ts - (e->wake ? e->wake : e->out)) };
	uint32_t mask = e->wake ? 0 : EPISODE_NO_WAKE;
	uint8_t *p = out, *how;

#define X(bit, field) mask |= e->field != x->field ? 1u << (bit) : 0;
	EPISODE_FIELDS(X)
#undef X
	*p++ = 0;
	how = p;
	if (plain)
		*p++ = 0;
	p = put_varint(p, zigzag((uint64_t)e->tid - c->last_tid));
	p = put_varint(p, mask);
#define X(bit, field)           \
	if (mask & 1u << (bit)) \
		p = put_varint(p, zigzag((uint64_t)e->field - x->field));
	EPISODE_FIELDS(X)
#undef X
	for (unsigned int i = 0; i < ARRAY_SIZE(times); i++) {
		if (i == 1 && !e->wake)
			continue;
		if (plain) {
			*how |= (uint8_t)(plain_how(times[i]) << 2 * i);
			*plain = put_plain(*plain, times[i]);
		} else {
			p = put_varint(p, times[i]);
		}
	}
	*x = *e;
	c->last_tid = e->tid;
	c->last_in = e->h.ts;
	return (size_t)(p - out);
}

#define VARINT_MAX 10u
#define EPISODE_MAX (2 + 14 * VARINT_MAX) /* bytes that one may need, and a word more */
#define PLAIN_MAX (CODEC_PLAIN_MAX + 8)   /* the same of those apart */

/* After an error the chunk is not read on: what is remembered need not be whole. */
static inline int read_episode(struct codec *c, struct in *in, bool apart, bool near,
			       const struct cc_rec **ret)
{
	unsigned int how = apart ? (unsigned int)get_byte(in, near) : 0;
	struct cc_rec_episode *e =
		expect(c, c->last_tid + (uint32_t)unzigzag(get_varint(in, near)));
	uint64_t mask = get_varint(in, near);

#define X(bit, field)           \
	if (mask & 1u << (bit)) \
		e->field = (__typeof__(e->field))(e->field + unzigzag(get_varint(in, near)));
	if (mask & ~(uint64_t)EPISODE_NO_WAKE) {
		EPISODE_FIELDS(X)
	}
#undef X
#define TIME(nr) unzigzag(apart ? get_plain(in, how >> 2 * (nr)&3, near) : get_time(in, near))
	e->h.size = sizeof(*e);
	e->h.kind = CC_REC_EPISODE;
	e->out = e->h.ts + TIME(0);
	e->wake = mask & EPISODE_NO_WAKE ? 0 : e->out + TIME(1);
	e->h.ts = (e->wake ? e->wake : e->out) + TIME(2);
#undef TIME
	if (in->bad)
		return -EBADMSG;
	c->last_tid = e->tid;
	c->last_in = e->h.ts;
	*ret = &e->h;
	return sizeof(*e);
}

static int get_episode(struct codec *c, struct in *in, const struct cc_rec **ret)
{
	bool near = in->end - in->p >= EPISODE_MAX;

	if (!in->plain)
		return near ? read_episode(c, in, false, true, ret)
			    : read_episode(c, in, false, false, ret);
	near = near && in->plain_end - in->plain >= PLAIN_MAX;
	return near ? read_episode(c, in, true, true, ret) : read_episode(c, in, true, false, ret);
}

/* ---- all other kinds ---- */

enum { WORD_SAME = 0, WORD_DIFF = 1, WORD_LITERAL = 2 };
#define WORD_DIFF_MAX (1ull << 48) /* at most 7 bytes as a varint */

/* Bytes that the last record of this kind predicts; text and addresses after them are copied. */
static size_t head_bytes(unsigned int kind, size_t size)
{
	size_t n = kind >= CODEC_KINDS ? 0 : CODEC_HEAD_BYTES;

	if (kind == CC_REC_STACK)
		n = sizeof(struct cc_rec_stack);
	else if (kind == CC_REC_MODULE)
		n = sizeof(struct cc_rec_module);
	else if (kind == CC_REC_NAME)
		n = sizeof(struct cc_rec_name);
	return CC_MIN(n, size);
}

static size_t put_other(struct codec *c, const struct cc_rec *rec, uint8_t *out)
{
	size_t head = head_bytes(rec->kind, rec->size), words = head / 8;
	uint8_t *p = put_varint(out + 1, rec->size / 8u), *control = p;
	uint64_t *prev = c->prev[rec->kind % CODEC_KINDS];

	out[0] = rec->kind;
	p += (words + 3) / 4;
	memset(control, 0, (size_t)(p - control));
	for (size_t i = 0; i < words; i++) {
		uint64_t v, diff;
		unsigned int how = WORD_SAME;

		memcpy(&v, (const uint8_t *)rec + 8 * i, 8);
		diff = zigzag(v - prev[i]);
		prev[i] = v;
		if (diff >= WORD_DIFF_MAX) {
			how = WORD_LITERAL;
			memcpy(p, &v, 8);
			p += 8;
		} else if (diff) {
			how = WORD_DIFF;
			p = put_varint(p, diff);
		}
		control[i / 4] |= (uint8_t)(how << 2 * (i % 4));
	}
	memcpy(p, (const uint8_t *)rec + head, rec->size - head);
	return (size_t)(p - out) + rec->size - head;
}

static int get_other(struct codec *c, unsigned int kind, struct in *in, void *out, size_t cap)
{
	uint64_t size = get_varint(in, false);
	uint8_t control[CODEC_HEAD_BYTES / 8 / 4];
	uint64_t *prev = c->prev[kind % CODEC_KINDS];

	if (size > UINT16_MAX / 8 || 8 * size < sizeof(struct cc_rec) || 8 * size > cap)
		return -EBADMSG;
	size *= 8;
	size_t head = head_bytes(kind, size), words = head / 8;

	get_bytes(in, control, (words + 3) / 4);
	for (size_t i = 0; i < words; i++) {
		unsigned int how = control[i / 4] >> 2 * (i % 4) & 3;

		if (how == WORD_LITERAL)
			get_bytes(in, &prev[i], 8);
		else if (how == WORD_DIFF)
			prev[i] += unzigzag(get_varint(in, false));
		else if (how != WORD_SAME)
			return -EBADMSG;
		memcpy((uint8_t *)out + 8 * i, &prev[i], 8);
	}
	get_bytes(in, (uint8_t *)out + head, size - head);
	/* the header was coded with the rest: it must say what the coding said */
	return in->bad || !codec_can(out, size) || ((struct cc_rec *)out)->kind != kind ? -EBADMSG
											: (int)size;
}

size_t codec_put(struct codec *c, const struct cc_rec *rec, uint8_t *out, uint8_t **plain)
{
	if (rec->kind == CC_REC_EPISODE && rec->size == sizeof(struct cc_rec_episode))
		return put_episode(c, (const struct cc_rec_episode *)rec, out, plain);
	return put_other(c, rec, out);
}

int codec_get(struct codec *c, struct codec_in *in, void *out, size_t cap,
	      const struct cc_rec **ret)
{
	if (in->p >= in->end)
		return -EBADMSG;
	struct in from = { in->p + 1, in->end, in->plain, in->plain_end, false };
	int size;

	if (*in->p) {
		size = get_other(c, *in->p, &from, out, cap);
		*ret = out;
	} else {
		size = get_episode(c, &from, ret);
	}
	in->p = from.p;
	in->plain = from.plain;
	return size;
}
