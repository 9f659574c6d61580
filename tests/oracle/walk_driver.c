/* SPDX-License-Identifier: Apache-2.0 */
/* walk_driver: runs the engine for the oracle. stdin: frames of `u32 bytes` + that many bytes of
 * records; a record of kind 0 (header, u32 tid, u32 0, u64 lo, u64 hi) asks for the plain walk of
 * that task's span. stdout, per frame: R (request), W (walk) and P (piece) lines, then one E. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"

struct query {
	struct cc_rec h;
	uint32_t tid, zero;
	uint64_t lo, hi;
};
_Static_assert(sizeof(struct query) == 40, "frame format");

static const char *id_text(struct cc_reqid id, char buf[64])
{
	switch ((enum cc_reqid_kind)id.kind) {
	case CC_REQID_NONE:
		return "-";
	case CC_REQID_SOCK:
		snprintf(buf, 64, "%" PRIx64 "#%u", id.id, id.ordinal);
		break;
	case CC_REQID_TID:
		snprintf(buf, 64, "tid:%" PRIu64, id.id);
		break;
	case CC_REQID_GOID:
		snprintf(buf, 64, "goid:%" PRIu64, id.id);
		break;
	}
	return buf;
}

static void print_pieces(const struct cc_piece *p, size_t cnt)
{
#define X(id, name) [CC_ENDED_##id] = name,
	static const char *const ended[CC_ENDED_CNT] = { CC_ENDED(X) };
#undef X
	char a[64], b[64];

	for (size_t i = 0; i < cnt; i++, p++)
		printf("P %u %" PRIu64 " %" PRIu64 " %u %s w=%u h=%u o=%u for=%s by=%s f=%u "
		       "ended=%s\n",
		       p->depth, p->start, p->end, p->tid, wait_class_json(p->cls), p->waker_tid,
		       p->holder_tid, p->occupant_tid, id_text(p->for_request, a),
		       id_text(p->by_request, b), p->flags, ended[p->ended]);
}

static void print_requests(const struct engine *e)
{
	static const char *const state[] = { [CC_RQS_DONE] = "done",
					     [CC_RQS_IN_FLIGHT] = "in_flight",
					     [CC_RQS_RESUMED] = "resumed" };
	size_t cnt;
	const struct cc_request *const *r = engine_requests(e, &cnt);
	struct path_buf buf = { 0 };
	char id[64];

	for (size_t i = 0; i < cnt; i++) {
		printf("R %s %" PRIu64 " %" PRIu64 " %s\n", id_text(r[i]->id, id), r[i]->start,
		       r[i]->end, state[r[i]->state]);
		print_pieces(request_path(r[i], &buf), r[i]->path_cnt);
	}
	path_buf_done(&buf);
}

static int answer(struct engine *e, const struct query *q)
{
	struct cc_piece *p;
	size_t cnt;
	int err = engine_walk(e, q->tid, q->lo, q->hi, &p, &cnt);

	if (err)
		return err;
	printf("W %u %" PRIu64 " %" PRIu64 "\n", q->tid, q->lo, q->hi);
	print_pieces(p, cnt);
	free(p);
	return 0;
}

static int run_frame(const unsigned char *buf, size_t len, unsigned long frame)
{
	struct engine *e;
	struct cc_rec h;
	int err = engine_new(&(struct engine_opts){ 0 }, &e);

	if (err)
		return err;
	for (size_t off = 0; !err && len - off >= sizeof(h); off += h.size) {
		memcpy(&h, buf + off, sizeof(h));
		if (h.size < sizeof(h) || h.size > len - off)
			break;
		if (h.kind != CC_REC_NONE)
			err = engine_feed(e, (const void *)(buf + off), h.size);
		if (err == -EINVAL)
			err = 0; /* counted by the engine */
	}
	if (!err)
		err = engine_finish(e);
	if (!err)
		print_requests(e);
	for (size_t off = 0; !err && len - off >= sizeof(struct query); off += h.size) {
		memcpy(&h, buf + off, sizeof(h));
		if (h.size < sizeof(h) || h.size > len - off)
			break;
		if (h.kind == CC_REC_NONE && h.size == sizeof(struct query))
			err = answer(e, (const void *)(buf + off));
	}
	printf("E %lu malformed=%" PRIu64 " lost_ns=%" PRIu64 "\n", frame,
	       engine_stats(e)->malformed, engine_stats(e)->lost_ns);
	fflush(stdout);
	engine_free(e);
	return err;
}

int main(void)
{
	uint32_t len;
	int err = 0;

	for (unsigned long frame = 1; !err && fread(&len, sizeof(len), 1, stdin) == 1; frame++) {
		/* 8-byte aligned, as records are everywhere else */
		unsigned char *buf = malloc(len ? len : 1);

		if (!buf || fread(buf, 1, len, stdin) != len)
			err = -EIO;
		else
			err = run_frame(buf, len, frame);
		free(buf);
	}
	if (err)
		fprintf(stderr, "walk_driver: %s\n", strerror(-err));
	return err ? 1 : 0;
}
