/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the JSON lines of versions 1 and 2: whatever comes out must be records. */
#include "codec.h"
#include "fuzz.h"
#include "legacy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const struct cc_rec *rec;
	struct legacy *l;
	struct cc_err err;
	char path[32];
	int fd = fuzz_file(data, len, path);

	if (legacy_open(path, &err, &l) == 0) {
		while ((rec = legacy_next(l)))
			if (!codec_can(rec, rec->size))
				abort();
		legacy_free(l);
	}
	close(fd);
	return 0;
}
