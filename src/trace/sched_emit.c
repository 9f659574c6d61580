/* SPDX-License-Identifier: Apache-2.0 */
#include "sched_emit.h"

#include <errno.h>

#define TOLD_MAX (1u << 20) /* stacks, and names, that are remembered */

static struct cc_rec head(unsigned int kind, unsigned int aux, size_t size, cc_ns ts)
{
	return (struct cc_rec){ .size = (uint16_t)size,
				.kind = (uint8_t)kind,
				.aux = (uint16_t)aux,
				.cpu = UINT16_MAX,
				.ts = ts };
}

static int emit(struct sched_emit *e, const void *rec)
{
	const struct cc_rec *r = rec;
	int err = e->fn(e->ctx, r, r->size);

	return err < 0 ? err : 0;
}

void sched_emit_done(struct sched_emit *e)
{
	map_done(&e->mem, &e->stacks);
	map_done(&e->mem, &e->names);
}

int sched_emit_option(struct sched_emit *e, unsigned int option, uint64_t value)
{
	struct cc_rec_counter r = { .h = head(CC_REC_OPTION, option, sizeof(r), 0),
				    .value = value };

	return emit(e, &r);
}

int sched_emit_task(struct sched_emit *e, const struct sched_thread *t, unsigned int what,
		    uint32_t other, cc_ns ts)
{
	struct cc_rec_task r = { .h = head(CC_REC_TASK, what, sizeof(r), ts),
				 .tid = t->tid,
				 .tgid = t->tgid };

	if (what == CC_TASK_FORK)
		r.parent = other;
	else if (what == CC_TASK_EXEC)
		r.old_tid = other;
	memcpy(r.comm, t->comm, sizeof(r.comm));
	return emit(e, &r);
}

int sched_emit_name(struct sched_emit *e, const struct sched_thread *t, cc_ns ts)
{
	return sched_emit_task(e, t, CC_TASK_NAMED, 0, ts);
}

/* ---- waits -------------------------------------------------------------------------------- */

enum { NR_FUTEX = 202, NR_FUTEX_WAITV = 449 }; /* x86-64 */

static int emit_extra(struct sched_emit *e, const struct sched_thread *t, cc_ns in)
{
	const struct sched_wake *w = &t->wake[0];
	struct cc_rec_extra x = { .h = head(CC_REC_EXTRA, (uint16_t)t->wait_nr, sizeof(x), in),
				  .tid = t->tid,
				  .seq = t->seq,
				  .ustack = t->ustack,
				  .kstack = t->kstack,
				  .waker_ustack = t->wake_cnt ? w->ustack : 0,
				  .waker_kstack = t->wake_cnt ? w->kstack : 0,
				  .fd = -1 };

	if (t->wait_nr == NR_FUTEX && t->wait_args[0]) {
		memcpy(x.args, t->wait_args, sizeof(x.args));
		x.uaddr = t->wait_args[0];
	}
	if (!x.ustack && !x.kstack && !x.waker_ustack && !x.waker_kstack && !x.uaddr)
		return 0;
	return emit(e, &x);
}

static int emit_wakes(struct sched_emit *e, const struct sched_thread *t)
{
	int err = 0;

	for (uint32_t i = 1; i < t->wake_cnt && !err; i++) {
		const struct sched_wake *w = &t->wake[i];
		struct cc_rec_wake r = { .h = head(CC_REC_WAKE, 0, sizeof(r), w->ts),
					 .tid = t->tid,
					 .waker_tid = w->waker,
					 .waker_tgid = w->waker_tgid };

		r.h.flags = w->ctx;
		e->counts->unseen++;
		err = emit(e, &r);
	}
	return err;
}

int sched_emit_episode(struct sched_emit *e, struct sched_thread *t, cc_ns in)
{
	struct cc_rec_episode r = {
		.h = head(CC_REC_EPISODE, (uint16_t)t->wait_nr, sizeof(r), in),
		.tid = t->tid,
		.seq = ++t->seq,
		.out = t->since,
		.state = t->state,
		.key = t->wait_nr == NR_FUTEX ? (uint32_t)t->wait_args[0] : 0,
		.lost = t->lost,
	};
	int err;

	r.h.flags = t->flags;
	if (t->wake_cnt) {
		r.wake = t->wake[0].ts;
		r.waker_tid = t->wake[0].waker;
		r.waker_tgid = t->wake[0].waker_tgid;
		r.h.flags |= (uint8_t)(t->wake[0].ctx << CC_EP_CTX_SHIFT);
	}
	err = emit(e, &r);
	if (!err)
		err = emit_extra(e, t, in);
	if (!err)
		err = emit_wakes(e, t);
	t->lost = 0;
	t->wake_cnt = 0;
	t->flags = 0;
	t->ustack = t->kstack = 0;
	return err;
}

int sched_emit_reason(struct sched_emit *e, const struct sched_thread *t, uint64_t kstack)
{
	struct cc_rec_extra x = { .h = head(CC_REC_EXTRA, (uint16_t)t->wait_nr, sizeof(x),
					    t->since),
				  .tid = t->tid,
				  .seq = t->seq,
				  .kstack = kstack,
				  .fd = -1 };

	return emit(e, &x);
}

int sched_emit_open(struct sched_emit *e, const struct sched_thread *t, cc_ns now, bool last)
{
	bool off = t->where == SCHED_OFF;
	struct cc_rec_open_task r = {
		.h = head(CC_REC_OPEN_TASK, (uint16_t)t->wait_nr, sizeof(r), now),
		.tid = t->tid,
		.tgid = t->tgid,
		.out = off ? t->since : 0,
		.wake = off && t->wake_cnt ? t->wake[0].ts : 0,
		.state = off ? t->state : 0,
		.seq = t->seq + 1,
		.ustack = off ? t->ustack : 0,
		.kstack = off ? t->kstack : 0,
		.fd = -1,
		.lost = t->lost,
		.last_in = off ? 0 : t->since,
	};

	r.h.flags = last ? CC_TF_TRACED | CC_TF_STOP : CC_TF_TRACED;
	memcpy(r.comm, t->comm, sizeof(r.comm));
	return emit(e, &r);
}

int sched_emit_loss(struct sched_emit *e, cc_ns from, cc_ns to, uint64_t cnt)
{
	struct cc_rec_loss r = { .h = head(CC_REC_LOSS, 0, sizeof(r), to),
				 .from = CC_MIN(from, to),
				 .to = to,
				 .cnt = cnt };

	return emit(e, &r);
}

int sched_emit_tick(struct sched_emit *e, cc_ns ts, bool last)
{
	struct cc_rec_tick r = { .h = head(CC_REC_TICK, 0, sizeof(r), ts),
				 .drained_to = ts,
				 .interval_ns = CC_S(1) };

	r.h.flags = last;
	if (e->wall_off && (int64_t)ts < INT64_MAX - e->wall_off)
		r.realtime_ns = (uint64_t)((int64_t)ts + e->wall_off);
	return emit(e, &r);
}

/* ---- stacks ------------------------------------------------------------------------------- */

bool sched_frame_is_kernel(const struct sched_frame *f)
{
	return f->addr >> 63 || slice_starts(f->module, "[kernel");
}

/* Remembers @key. Returns 1 if it is new, 0 if it was told, -ENOMEM. */
static int is_new(struct sched_emit *e, struct map *told, uint64_t key)
{
	if (map_get(told, key))
		return 0;
	if (told->cnt >= TOLD_MAX) {
		e->counts->no_room++;
		return 0;
	}
	return map_put(&e->mem, told, key, 1) ? -ENOMEM : 1;
}

static struct slice base_name(struct slice path)
{
	const char *cut = memrchr(path.p, '/', path.n);

	return cut ? slice_of(cut + 1, path.p + path.n) : path;
}

static int emit_frame_name(struct sched_emit *e, uint32_t tgid, const struct sched_frame *f)
{
	struct slice text = f->text, module = base_name(f->module);
	uint64_t words[(sizeof(struct cc_rec_name) + 512) / 8] = { 0 };
	struct cc_rec_name *r = (struct cc_rec_name *)words;
	int fresh;

	if (!text.n || slice_is(text, "[unknown]"))
		return 0;
	fresh = is_new(e, &e->names, map_mix2(f->addr, tgid));
	if (fresh <= 0)
		return fresh;
	text.n = CC_MIN(text.n, 255u);
	module.n = slice_starts(module, "[") ? 0 : CC_MIN(module.n, 255u);
	r->h = head(CC_REC_NAME, CC_NAME_FRAME, sizeof(*r) + ((text.n + module.n + 7) & ~(size_t)7),
		    0);
	r->id = f->addr;
	r->tgid = tgid;
	r->len[0] = (uint16_t)text.n;
	r->len[1] = (uint16_t)module.n;
	memcpy(r->text, text.p, text.n);
	memcpy(r->text + text.n, module.p, module.n);
	return emit(e, r);
}

int sched_emit_stack(struct sched_emit *e, uint32_t tgid, bool kernel, const struct sched_frame *f,
		     uint32_t cnt, uint64_t *ret_key)
{
	uint64_t words[sizeof(struct cc_rec_stack) / 8 + SCHED_FRAMES] = { 0 };
	struct cc_rec_stack *s = (struct cc_rec_stack *)words;
	uint64_t key;
	uint32_t n = 0;
	int err = 0, fresh;

	*ret_key = 0;
	s->tgid = kernel ? 0 : tgid;
	key = map_mix2(s->tgid, kernel);
	for (uint32_t i = 0; i < cnt; i++) {
		if (sched_frame_is_kernel(&f[i]) != kernel)
			continue;
		s->ip[n++] = f[i].addr;
		key = map_mix2(key, f[i].addr);
	}
	if (!n)
		return 0;
	key |= !key;
	fresh = is_new(e, &e->stacks, key);
	*ret_key = key;
	if (fresh <= 0)
		return fresh;
	e->counts->stacks++;
	for (uint32_t i = 0; i < cnt && !err; i++)
		if (sched_frame_is_kernel(&f[i]) == kernel)
			err = emit_frame_name(e, s->tgid, &f[i]);
	s->h = head(CC_REC_STACK, n, sizeof(*s) + n * sizeof(s->ip[0]), 0);
	s->h.flags = kernel ? CC_ST_KERNEL : 0;
	s->key = key;
	return err ? err : emit(e, s);
}
