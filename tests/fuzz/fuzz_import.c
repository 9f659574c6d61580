/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a scheduler trace in text: what comes out must be records, in bounds, and paths of
 * them must sum. */
#include "codec.h"
#include "engine.h"
#include "fuzz.h"
#include "import.h"

static void check_sums(const struct engine *e)
{
	size_t cnt;
	const struct cc_request *const *r = engine_requests(e, &cnt);

	for (size_t i = 0; i < cnt; i++)
		if (r[i]->path_ok && r[i]->path_sum_ns != r[i]->end - r[i]->start)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const struct engine_opts eo = { .memory_bytes = 32u << 20 };
	const struct cc_rec *rec;
	struct import *im;
	struct engine *e;
	struct cc_err err;
	char path[32];
	int n;

	if (import_open(fuzz_file(data, len, path), path, &err, &im))
		return 0;
	if (engine_new(&eo, &e))
		return -1;
	while ((n = import_next(im, &rec)) == 1)
		if (!codec_can(rec, rec->size) || engine_feed(e, rec, rec->size))
			abort(); /* what is made here is never malformed */
	if (n < 0 || engine_finish(e))
		abort();
	check_sums(e);
	engine_free(e);
	import_free(im);
	return 0;
}
