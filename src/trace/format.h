/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format: bytes of a .criticast file, version 4. Little endian. ABI: append only.
 *
 *   head | chunk | chunk | ... | index | tail
 *   chunk = trace_chunk_head, zip_len bytes of zlib, plain_len bytes that do not compress; a key
 *           chunk is one of another magic. In version 3 there are no plain bytes
 *   index = trace_index_head, entry_cnt x trace_index_entry, key_cnt x trace_key
 *   tail  = trace_tail, the last 16 bytes of a file that was closed
 * docs/FORMAT.md says the same in full, with the rules of what may change.
 */
#ifndef CC_TRACE_FORMAT_H
#define CC_TRACE_FORMAT_H

#include <stdint.h>

#define TRACE_MAGIC "CRTC"
#define TRACE_VERSION 4
#define TRACE_VERSION_LEAST 3
#define TRACE_LITTLE 1
#define TRACE_CHUNK_MAGIC 0x4b484343u /* "CCHK" */
#define TRACE_KEY_MAGIC 0x59454b43u   /* "CKEY" */
#define TRACE_INDEX_MAGIC 0x58444943u /* "CIDX" */
#define TRACE_TAIL_MAGIC 0x444e4543u  /* "CEND" */

#define TRACE_CHUNK_RAW (256u << 10) /* a chunk is written when it has this many record bytes */
/* Bounds for a reader. One record more than TRACE_CHUNK_RAW may be in a chunk. */
#define TRACE_RAW_MAX (TRACE_CHUNK_RAW + (64u << 10))
#define TRACE_ENC_MAX (2 * TRACE_RAW_MAX)
#define TRACE_ZIP_MAX (TRACE_ENC_MAX + (64u << 10))
#define TRACE_PLAIN_MAX (TRACE_RAW_MAX / 64 * 24) /* CODEC_PLAIN_MAX of an EPISODE */
#define TRACE_HEAD_MAX 4096
#define TRACE_INDEX_MAX (1u << 24) /* entries */
/* Key chunks come after that many bytes of others, or eight times what they need themselves. */
#define TRACE_KEY_EVERY (8u << 20)
#define TRACE_KEY_RAW_MAX                                                      \
	(32u << 20) /* of records that lean: more, and there are no key chunks \
		     */

struct trace_head {
	char magic[4];
	uint16_t version;
	uint8_t endian; /* TRACE_LITTLE */
	uint8_t pad;
	uint32_t abi;      /* CC_ABI_VERSION */
	uint32_t head_len; /* offset of the first chunk; a later version may have a longer head */
};
_Static_assert(sizeof(struct trace_head) == 16, "file size");

struct trace_chunk_head {
	uint32_t magic;
	uint32_t crc;     /* CRC-32 of what follows it: the rest of this head, then the bytes */
	uint32_t zip_len; /* bytes after this head */
	uint32_t enc_len; /* bytes these inflate to: codec.h */
	uint32_t raw_len; /* bytes of records those decode to */
	uint32_t rec_cnt;
	uint64_t first_ns, last_ns; /* smallest and largest ts */
	uint32_t plain_len;         /* bytes after those; not in version 3 */
	uint32_t pad;
};
_Static_assert(sizeof(struct trace_chunk_head) == 48, "file size");

/* Bytes of a chunk's head. */
static inline uint32_t trace_chunk_head_len(unsigned int version)
{
	return version == 3 ? 40 : (uint32_t)sizeof(struct trace_chunk_head);
}

/* Bytes of a chunk after its head. */
static inline uint64_t trace_body_len(const struct trace_chunk_head *h)
{
	return (uint64_t)h->zip_len + h->plain_len;
}

struct trace_index_head {
	uint32_t magic;
	uint32_t crc; /* of what follows it: the rest of this head, then the entries */
	uint32_t entry_cnt;
	uint32_t key_cnt;
	uint64_t rec_cnt, raw_bytes; /* totals */
};
_Static_assert(sizeof(struct trace_index_head) == 32, "file size");

struct trace_index_entry {
	uint64_t off; /* of the chunk's head */
	uint64_t first_ns, last_ns;
	uint32_t rec_cnt, raw_len;
};
_Static_assert(sizeof(struct trace_index_entry) == 32, "file size");

struct trace_key { /* a run of key chunks: all that was told before it and later records lean on */
	uint64_t off;
	uint32_t chunk; /* number of the chunk after the run */
	uint32_t cnt;   /* key chunks in it */
};
_Static_assert(sizeof(struct trace_key) == 16, "file size");

struct trace_tail {
	uint64_t index_off;
	uint32_t magic;
	uint32_t pad;
};
_Static_assert(sizeof(struct trace_tail) == 16, "file size");

#endif
