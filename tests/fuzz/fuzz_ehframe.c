/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as an .eh_frame section: of a target's binary, which is hostile. */
#include "ehframe.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct fde *fdes = NULL;
	size_t cnt = 0;

	if (ehframe_read(data, len, 0x1000, &fdes, &cnt) == 0) {
		for (size_t i = 0; i < cnt; i++) {
			const struct fde *f = ehframe_find(fdes, cnt, fdes[i].start);

			if (!fdes[i].len || fdes[i].off >= len || (f && f->start > fdes[i].start))
				abort();
		}
		free(fdes);
	}
	return 0;
}
