/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as an .eh_frame section, then as a .debug_frame section too: of a target's binary,
 * which is hostile. And as what tells where the first of them is. */
#include "ehframe.h"
#include "fuzz.h"

static void check(const struct fde *fdes, size_t cnt, size_t len)
{
	for (size_t i = 0; i < cnt; i++) {
		const struct fde *f = ehframe_find(fdes, cnt, fdes[i].start);

		if (!fdes[i].len || (fdes[i].off & ~FDE_DEBUG) >= len ||
		    (f && f->start > fdes[i].start))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct fde *fdes = NULL;
	size_t cnt = 0;
	uint64_t addr;

	ehframe_hdr(data, len, 0x1000, &addr);
	if (ehframe_read(data, len, 0x1000, &fdes, &cnt))
		return 0;
	check(fdes, cnt, len);
	if (!ehframe_add_debug(data, len, &fdes, &cnt))
		check(fdes, cnt, len);
	free(fdes);
	return 0;
}
