/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as records, into the engine and out as a snapshot: what a hostile file can say once its
 * container is whole. Every path it tells must sum to its request's time. */
#include <string.h>

#include "engine.h"
#include "fuzz.h"
#include "snapshot.h"

static void check_sums(const struct engine *e)
{
	size_t cnt;
	const struct cc_request *const *r = engine_requests(e, &cnt);
	struct path_buf buf = { 0 };

	for (size_t i = 0; i < cnt; i++) {
		const struct cc_request *q = r[i];
		const struct cc_piece *path = request_path(q, &buf);
		cc_ns sum = 0;

		for (uint32_t k = 0; path && k < q->path_cnt; k++)
			if (path[k].depth == 0)
				sum += path[k].end - path[k].start;
		if (q->path_ok && (sum != q->end - q->start || sum != q->path_sum_ns))
			abort();
	}
	path_buf_done(&buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const struct engine_opts eo = { .memory_bytes = 32u << 20 };
	const struct cc_query q = { .all_in_flight = true, .max_rows = 64, .max_pieces = 4096 };
	struct snapshot *s;
	struct engine *e;

	if (engine_new(&eo, &e))
		return -1;
	for (size_t off = 0; len - off >= sizeof(struct cc_rec);) {
		struct cc_rec h;

		memcpy(&h, data + off, sizeof(h));
		size_t size = h.size < sizeof(h) ? sizeof(h) : CC_MIN(h.size, len - off);

		if (engine_feed(e, (const struct cc_rec *)(data + off), size) == 0 &&
		    h.kind == CC_REC_TICK)
			check_sums(e);
		off += size;
	}
	if (engine_finish(e) == 0) {
		check_sums(e);
		if (snapshot_build(e, &q, &s) == 0)
			snapshot_free(s);
	}
	engine_free(e);
	return 0;
}
