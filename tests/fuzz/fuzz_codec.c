/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as coded records; what they decode to is coded again and must come back. The first two
 * say how many of the last ones lie apart; none: as in version 3. */
#include <string.h>

#include "codec.h"
#include "fuzz.h"

static void again(struct codec *out, struct codec *in, const struct cc_rec *rec, size_t size,
		  bool apart)
{
	static uint64_t room[(UINT16_MAX + 1) / 8];
	static uint8_t enc[CODEC_MAX(UINT16_MAX + 1)];
	uint8_t plain[CODEC_PLAIN_ROOM], *plain_end = plain;
	const struct cc_rec *back;
	size_t n = codec_put(out, rec, enc, apart ? &plain_end : NULL);
	struct codec_in from = { .p = enc, .end = enc + n };

	if (apart) {
		from.plain = plain;
		from.plain_end = plain_end;
	}
	if (n > CODEC_MAX(size) || plain_end - plain > CODEC_PLAIN_MAX ||
	    codec_get(in, &from, room, sizeof(room), &back) != (int)size || from.p != enc + n ||
	    from.plain != from.plain_end || memcmp(rec, back, size) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static uint64_t room[(UINT16_MAX + 1) / 8];
	static struct codec in, out, back;
	const struct cc_rec *rec;
	uint16_t plain;
	int size;

	if (len < sizeof(plain))
		return 0;
	memcpy(&plain, data, sizeof(plain));
	if (plain > len - sizeof(plain))
		return 0;
	struct codec_in from = { .p = data + sizeof(plain), .end = data + len - plain };

	if (plain) {
		from.plain = from.end;
		from.plain_end = data + len;
	}
	codec_reset(&in);
	codec_reset(&out);
	codec_reset(&back);
	while ((size = codec_get(&in, &from, room, sizeof(room), &rec)) >= 0)
		again(&out, &back, rec, (size_t)size, plain != 0);
	return 0;
}
