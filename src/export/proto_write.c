/* SPDX-License-Identifier: Apache-2.0 */
#include "proto_write.h"

#include <errno.h>
#include <string.h>

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BLOCK = 2 };

static void put_bytes(struct msg *m, const void *data, size_t len)
{
	if (m->err || (m->err = vec_reserve(&m->mem, &m->b, m->b.cnt + len)))
		return;
	if (len)
		memcpy(m->b.p + m->b.cnt, data, len);
	m->b.cnt += (uint32_t)len;
}

void put_varint(struct msg *m, uint64_t v)
{
	uint8_t buf[10];
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		buf[n++] = (uint8_t)(v | 0x80);
	buf[n++] = (uint8_t)v;
	put_bytes(m, buf, n);
}

void put_int(struct msg *m, unsigned int field, uint64_t v)
{
	put_varint(m, field << 3 | WIRE_VARINT);
	put_varint(m, v);
}

void put_fixed64(struct msg *m, unsigned int field, uint64_t v)
{
	uint8_t buf[8];

	for (size_t i = 0; i < sizeof(buf); i++)
		buf[i] = (uint8_t)(v >> 8 * i);
	put_varint(m, field << 3 | WIRE_FIXED64);
	put_bytes(m, buf, sizeof(buf));
}

void put_block(struct msg *m, unsigned int field, const void *data, size_t len)
{
	put_varint(m, field << 3 | WIRE_BLOCK);
	put_varint(m, len);
	put_bytes(m, data, len);
}

void put_text(struct msg *m, unsigned int field, const char *text)
{
	put_block(m, field, text, strlen(text));
}

void put_msg(struct msg *m, unsigned int field, struct msg *nested)
{
	put_block(m, field, nested->b.p, nested->b.cnt);
	m->err = m->err ? m->err : nested->err;
	nested->b.cnt = 0;
}

void msg_done(struct msg *m) { vec_done(&m->mem, &m->b); }
