/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as coded records; what they decode to is coded again and must come back. */
#include <string.h>

#include "codec.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static uint64_t room[(UINT16_MAX + 1) / 8], more[(UINT16_MAX + 1) / 8];
	static uint8_t enc[CODEC_MAX(UINT16_MAX + 1)];
	static struct codec in, out, again;
	const struct cc_rec *rec, *back;
	const uint8_t *p = data;

	codec_reset(&in);
	codec_reset(&out);
	codec_reset(&again);
	for (;;) {
		int size = codec_get(&in, &p, data + len, room, sizeof(room), &rec);

		if (size < 0)
			return 0;
		size_t n = codec_put(&out, rec, enc);
		const uint8_t *q = enc;

		if (n > CODEC_MAX((size_t)size) ||
		    codec_get(&again, &q, enc + n, more, sizeof(more), &back) != size ||
		    q != enc + n || memcmp(rec, back, (size_t)size) != 0)
			abort();
	}
}
