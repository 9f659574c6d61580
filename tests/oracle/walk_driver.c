/* SPDX-License-Identifier: Apache-2.0 */
/* walk_driver [WALKS]: runs the engine for the oracle, and walks the spans of WALKS tasks of each
 * frame, of which only what holds for every walk is asked. stdin: frames of `u32 bytes` + that many
 * bytes of records; a record of kind 0 (header, u32 tid, u32 0, u64 lo, u64 hi) asks for the plain
 * walk of that task's span. stdout, per frame: R (request), W (walk) and P (piece) lines, B (what
 * does not hold) and one E. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "exact.h"
#include "snapshot.h"

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

/* ---- what holds for every walk and every request ----------------------------------------------
 */

#define TIDS_MAX 64

struct frame_span { /* what a frame's records are about */
	uint32_t tids[TIDS_MAX], tid_cnt;
	cc_ns lo, hi;
};

static void see(struct frame_span *f, const struct cc_rec *rec)
{
	const struct cc_rec_episode *ep = (const void *)rec;
	const struct cc_rec_open_task *open = (const void *)rec;
	uint32_t tid = rec->kind == CC_REC_EPISODE ? ep->tid : open->tid;

	if (rec->kind != CC_REC_EPISODE && rec->kind != CC_REC_OPEN_TASK)
		return;
	f->lo = f->lo ? CC_MIN(f->lo, rec->ts) : rec->ts;
	f->hi = CC_MAX(f->hi, rec->ts);
	for (uint32_t i = 0; i < f->tid_cnt; i++)
		if (f->tids[i] == tid)
			return;
	if (f->tid_cnt < TIDS_MAX)
		f->tids[f->tid_cnt++] = tid;
}

static uint64_t next(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	return *seed ^= *seed << 17;
}

static int walk_anywhere(struct engine *e, const struct frame_span *f, unsigned long walks,
			 unsigned long frame)
{
	uint64_t seed = frame * 0x9e3779b97f4a7c15ull + 1;

	if (!f->tid_cnt || f->hi < f->lo + 2)
		return 0;
	for (unsigned long i = 0; i < walks; i++) {
		uint32_t tid = f->tids[next(&seed) % f->tid_cnt];
		cc_ns lo = f->lo + next(&seed) % (f->hi - f->lo);
		cc_ns hi = lo + 1 + next(&seed) % (f->hi - lo);
		struct cc_piece *p;
		size_t cnt;
		int err = engine_walk(e, tid, lo, hi, &p, &cnt);

		if (err)
			return err;
		if (!exact_pieces(p, cnt, lo, hi))
			printf("B walk of %u [%" PRIu64 ",%" PRIu64 ") is not exact\n", tid, lo,
			       hi);
		free(p);
	}
	return 0;
}

/* All waits, by what requests waited for themselves or by what was beneath it. */
static int waited(const struct engine *e, bool root_causes, cc_ns *ret)
{
	const struct cc_query q = { .all_in_flight = true, .root_causes = root_causes };
	struct snapshot *s;
	int err = snapshot_build(e, &q, &s);

	if (err)
		return err;
	*ret = 0;
	for (uint32_t i = 0; i < s->wait_cnt; i++)
		*ret += s->waits[i].total_ns;
	snapshot_free(s);
	return 0;
}

static int check_requests(struct engine *e)
{
	size_t cnt;
	const struct cc_request *const *r = engine_requests(e, &cnt);
	struct path_buf buf = { 0 };
	struct cc_found found;
	cc_ns symptom, root;
	char id[64];

	for (size_t i = 0; i < cnt; i++) {
		const struct cc_found *f = request_found(r[i], &found);
		cc_ns sum = 0;

		if (!r[i]->path_cnt)
			continue;
		for (int cls = 0; cls < WAIT_CLASS_CNT; cls++)
			sum += f->class_ns[cls];
		if (sum != r[i]->end - r[i]->start || r[i]->path_sum_ns != sum ||
		    !exact_pieces(request_path(r[i], &buf), r[i]->path_cnt, r[i]->start, r[i]->end))
			printf("B request %s is not exact\n", id_text(r[i]->id, id));
	}
	path_buf_done(&buf);
	int err = waited(e, false, &symptom);

	if (!err)
		err = waited(e, true, &root);
	if (!err && symptom != root)
		printf("B requests waited %" PRIu64 " ns, %" PRIu64 " by root cause\n", symptom,
		       root);
	return err;
}

static int run_frame(const unsigned char *buf, size_t len, unsigned long frame, unsigned long walks)
{
	struct frame_span f = { 0 };
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
		if (h.size >= sizeof(struct cc_rec_episode))
			see(&f, (const void *)(buf + off));
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
	if (!err && walks)
		err = walk_anywhere(e, &f, walks, frame);
	if (!err && walks)
		err = check_requests(e);
	printf("E %lu malformed=%" PRIu64 " lost_ns=%" PRIu64 "\n", frame,
	       engine_stats(e)->malformed, engine_stats(e)->lost_ns);
	fflush(stdout);
	engine_free(e);
	return err;
}

int main(int argc, char **argv)
{
	unsigned long walks = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
	uint32_t len;
	int err = 0;

	for (unsigned long frame = 1; !err && fread(&len, sizeof(len), 1, stdin) == 1; frame++) {
		/* 8-byte aligned, as records are everywhere else */
		unsigned char *buf = malloc(len ? len : 1);

		if (!buf || fread(buf, 1, len, stdin) != len)
			err = -EIO;
		else
			err = run_frame(buf, len, frame, walks);
		free(buf);
	}
	if (err)
		fprintf(stderr, "walk_driver: %s\n", strerror(-err));
	return err ? 1 : 0;
}
