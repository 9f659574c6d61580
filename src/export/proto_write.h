/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proto_write: protobuf messages, as they grow in memory.
 *
 * By hand: protobuf-c would need its compiler and every .proto at build time for what are three
 * rules (varint, eight bytes, length).
 */
#ifndef CC_PROTO_WRITE_H
#define CC_PROTO_WRITE_H

#include "mem.h"

struct msg { /* all zero is an empty one */
	struct mem mem;
	VEC(uint8_t) b;
	int err; /* sticky: -ENOMEM */
};

void put_varint(struct msg *m, uint64_t v); /* an element of a packed field */
void put_int(struct msg *m, unsigned int field, uint64_t v);
void put_fixed64(struct msg *m, unsigned int field, uint64_t v);
void put_block(struct msg *m, unsigned int field, const void *data, size_t len);
void put_text(struct msg *m, unsigned int field, const char *text);
/* Ends a nested message: it becomes a field of @m and is empty again. */
void put_msg(struct msg *m, unsigned int field, struct msg *nested);
void msg_done(struct msg *m);

#endif
