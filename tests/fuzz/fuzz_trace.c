/* SPDX-License-Identifier: Apache-2.0 */
/* A .criticast file of any bytes: read to its end twice, the second time from a seek. */
#include <errno.h>
#include <string.h>
#include <zlib.h>

#include "format.h"
#include "fuzz.h"
#include "trace.h"

/* Makes the CRCs fit, else no change gets further than to them. */
static void mend(uint8_t *p, size_t len)
{
	struct trace_head head;
	struct trace_chunk_head h = { 0 };
	size_t head_len;

	if (len < sizeof(head))
		return;
	memcpy(&head, p, sizeof(head));
	head_len = trace_chunk_head_len(head.version);
	for (size_t off = head.head_len; off < len && len - off >= head_len;) {
		memcpy(&h, p + off, head_len);
		if (h.magic != TRACE_CHUNK_MAGIC || trace_body_len(&h) > len - off - head_len)
			return;
		h.crc = (uint32_t)crc32(0, p + off + 8, (uInt)(head_len - 8 + trace_body_len(&h)));
		memcpy(p + off, &h, head_len);
		off += head_len + trace_body_len(&h);
	}
}

static uint64_t read_all(struct trace_reader *r)
{
	const struct cc_rec *rec;
	uint64_t sum = 0;
	size_t len;

	while (trace_reader_next(r, &rec, &len) == 1)
		sum += rec->ts ^ len ^ ((const uint8_t *)rec)[len - 1];
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t *mended = malloc(len + 1);
	struct trace_reader *r;
	struct cc_err err;
	char path[32];

	if (!mended)
		return -1;
	memcpy(mended, data, len);
	mend(mended, len);
	int fd = fuzz_file(mended, len, path);

	if (trace_reader_open(path, &err, &r) == 0) {
		const struct trace_info *info = trace_reader_info(r);

		if (read_all(r) == 1)
			abort(); /* the sum is used */
		if (trace_reader_seek(r, info->first_ns + (info->last_ns - info->first_ns) / 2, 100,
				      false) == 0)
			read_all(r);
		trace_reader_free(r);
	}
	close(fd);
	free(mended);
	return 0;
}
