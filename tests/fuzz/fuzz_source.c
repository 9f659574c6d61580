/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a file that a user names: which format it is, gzip around it, and a seek. Whatever
 * comes out must be records; what is refused must say why. */
#include <errno.h>
#include <string.h>

#include "codec.h"
#include "fuzz.h"
#include "trace.h"

static int take(void *ctx, const struct cc_rec *rec, size_t len)
{
	cc_ns *last = ctx;

	if (!codec_can(rec, len))
		abort();
	*last = rec->ts;
	return 0;
}

static void read_all(struct cc_source *src, cc_ns *last)
{
	while (src->ops->poll(src, 0, take, last) > 0)
		;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct cc_source *src;
	struct cc_err err = { .msg = "" };
	cc_ns last = 0;
	char path[32];
	int fd = fuzz_file(data, len, path), code = trace_source_new(path, &err, &src);

	close(fd);
	if (code) {
		if (code != -ENOMEM && !*err.msg)
			abort(); /* refused without a word */
		return 0;
	}
	read_all(src, &last);
	code = trace_source_seek(src, last / 2, 10, false);
	if (code == 0)
		read_all(src, &last);
	cc_source_free(src);
	return 0;
}
