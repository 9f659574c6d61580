/* SPDX-License-Identifier: Apache-2.0 */
#include "resolver_int.h"
#include "table_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PLACES_WAIT_MS 2000   /* at the end, for the answers that are on their way */
#define STACKS_MAX (1u << 18) /* keys told; 4 MiB at most */

int resolver_new(const struct resolver_opts *o, struct resolver **ret)
{
	struct resolver *r = calloc(1, sizeof(*r));
	struct table_cache *tables = NULL;
	int err = r ? 0 : -ENOMEM;

	if (!err) {
		keyset_init(&r->stacks, STACKS_MAX);
		err = file_cache_new(&r->files);
	}
	if (!err && o->keep_tables)
		err = table_cache_new(&tables);
	if (tables)
		file_cache_keep(r->files, tables);
	if (!err)
		err = procs_new(o->rules, &r->procs);
	if (!err)
		err = unwind_rows_new(r->files, &r->unwinder);
	if (!err)
		err = pending_new(&r->pending);
	if (!err)
		err = teach_init(&r->teach, o->rules);
	if (!err)
		err = teller_init(&r->teller, r->files,
				  o->kallsyms ? o->kallsyms : "/proc/kallsyms", o->names);
	if (err) {
		resolver_free(r);
		return err;
	}
	*ret = r;
	return 0;
}

void resolver_free(struct resolver *r)
{
	if (!r)
		return;
	teller_done(&r->teller);
	teach_done(&r->teach);
	keyset_done(&r->stacks);
	pending_free(r->pending);
	procs_free(r->procs);
	unwinder_free(r->unwinder);
	file_cache_free(r->files);
	free(r);
}

void resolver_health(const struct resolver *r, struct resolver_health *ret)
{
	*ret = r->health;
	ret->unclaimed = pending_lost(r->pending);
	ret->names = r->teller.name_cnt;
	ret->modules = r->teller.module_cnt;
	ret->procs = procs_cnt(r->procs);
	ret->kernel_hidden = r->teller.kernel_err == -EACCES;
	ret->bytes = file_cache_mem(r->files) + procs_mem(r->procs) + teach_mem(&r->teach) +
		     (r->teller.kernel ? kallsyms_mem(r->teller.kernel) : 0) +
		     (r->stacks.cap + r->teller.named.cap) * sizeof(uint64_t);
}

static bool names_a_file(uint32_t fd_kind)
{
	return fd_kind == CC_FD_FILE || fd_kind == CC_FD_DIR || fd_kind == CC_FD_CHAR ||
	       fd_kind == CC_FD_BLOCK;
}

/* Names what the task waited for. A kernel address (klock) is no business of ours. */
static int tell_resource(struct resolver *r, uint32_t tgid, uint64_t uaddr, int32_t fd,
			 uint32_t fd_kind, uint64_t fd_id, uint32_t fd_dev)
{
	int err = 0;

	if (!tgid)
		return 0;
	if (uaddr && !(uaddr >> 63)) {
		struct proc *proc = procs_get(r->procs, tgid);

		err = proc ? tell_address(&r->teller, proc, uaddr) : -ENOMEM;
	}
	if (!err && names_a_file(fd_kind))
		err = tell_fd(&r->teller, tgid, fd, fd_id, fd_dev);
	return err;
}

static int feed_extra(struct resolver *r, const struct cc_rec *rec, size_t len)
{
	_Alignas(8) uint8_t copy[sizeof(struct cc_rec_extra)];
	struct cc_rec_extra *e = (struct cc_rec_extra *)copy;
	struct pending_keys k;
	int err;

	if (len != sizeof(*e)) /* not of this loader: its keys are there already */
		return tell_record(&r->teller, rec, len);
	memcpy(e, rec, sizeof(*e));
	if (!pending_take(r->pending, PENDING_EXTRA, e->tid, e->seq, &k))
		return tell_record(&r->teller, rec, len);
	e->ustack = k.ustack ? k.ustack : e->ustack;
	e->kstack = k.kstack ? k.kstack : e->kstack;
	e->waker_ustack = k.waker_ustack ? k.waker_ustack : e->waker_ustack;
	e->waker_kstack = k.waker_kstack ? k.waker_kstack : e->waker_kstack;
	err = tell_resource(r, k.tgid, e->uaddr, e->fd, e->fd_kind, e->fd_id, e->fd_dev);
	return err ? err : tell_record(&r->teller, &e->h, len);
}

static int feed_open(struct resolver *r, const struct cc_rec *rec, size_t len)
{
	struct cc_rec_open_task o;
	struct pending_keys k;
	int err;

	if (len != sizeof(o))
		return tell_record(&r->teller, rec, len);
	memcpy(&o, rec, sizeof(o));
	if (pending_take(r->pending, PENDING_OPEN, o.tid, o.seq, &k)) {
		o.ustack = k.ustack ? k.ustack : o.ustack;
		o.kstack = k.kstack ? k.kstack : o.kstack;
	}
	/* only of a task that waits, and only for what a slow wait would be named for */
	err = o.out && !o.wake ? tell_resource(r, o.tgid, o.uaddr, o.fd, o.fd_kind, o.fd_id, 0) : 0;
	return err ? err : tell_record(&r->teller, &o.h, len);
}

static int feed_sample(struct resolver *r, const struct cc_rec *rec, size_t len)
{
	struct cc_rec_sample s;
	struct pending_keys k;

	if (len != sizeof(s))
		return tell_record(&r->teller, rec, len);
	memcpy(&s, rec, sizeof(s));
	if (pending_take(r->pending, PENDING_SAMPLE, s.tid, 0, &k)) {
		s.ustack = k.ustack ? k.ustack : s.ustack;
		s.kstack = k.kstack ? k.kstack : s.kstack;
	}
	return tell_record(&r->teller, &s.h, len);
}

/* Of a goroutine: walked in the kernel, by frame pointers, told without names. */
static int feed_stack(struct resolver *r, const struct cc_rec *rec, size_t len)
{
	union {
		char room[sizeof(struct cc_rec_stack) + CC_STACK_MAX * sizeof(__u64)];
		struct cc_rec_stack s;
	} b;
	const struct cc_rec_stack *in = (const struct cc_rec_stack *)rec;
	struct proc *proc;
	int err;

	if (len < sizeof(*in) || len > sizeof(b) || in->h.aux > CC_STACK_MAX ||
	    len - sizeof(*in) < in->h.aux * sizeof(in->ip[0])) {
		r->health.damaged++;
		return 0;
	}
	memcpy(&b, rec, len);
	if (b.s.h.flags & CC_ST_KERNEL)
		return tell_record(&r->teller, rec, len);
	proc = procs_get(r->procs, b.s.tgid);
	if (!proc)
		return -ENOMEM;
	b.s.gen = procs_stack_gen(proc, &proc->now.maps, b.s.ip, b.s.h.aux);
	err = tell_record(&r->teller, &b.s.h, len);
	return err ? err : tell_user_frames(&r->teller, proc, &proc->now.maps, b.s.ip, b.s.h.aux);
}

/* A goroutine is called by the function it began with. */
static int feed_go_task(struct resolver *r, const struct cc_rec *rec, size_t len)
{
	const struct cc_rec_go_task *t = (const struct cc_rec_go_task *)rec;
	struct proc *proc = NULL;
	int err = 0;

	if (len >= sizeof(*t) && t->start_pc) {
		proc = procs_get(r->procs, t->tgid);
		err = proc ? tell_user_frames(&r->teller, proc, &proc->now.maps, &t->start_pc, 1)
			   : -ENOMEM;
	}
	return err ? err : tell_record(&r->teller, rec, len);
}

static void note_task(struct resolver *r, const struct cc_rec *rec, size_t len)
{
	const struct cc_rec_task *t = (const struct cc_rec_task *)rec;

	if (len < sizeof(*t))
		return;
	if (t->h.aux == CC_TASK_EXEC || (t->h.aux == CC_TASK_FORK && t->tid == t->tgid))
		procs_reborn(r->procs, t->tgid, t->h.ts);
	else if (t->h.aux == CC_TASK_EXIT && t->tid == t->tgid)
		procs_exited(r->procs, t->tgid);
}

static int tell_counters(struct resolver *r, cc_ns ts)
{
	const struct {
		uint16_t what;
		uint64_t value;
	} cnt[] = {
		{ CC_CNT_UNWOUND, r->unwound },
		{ CC_CNT_UNWOUND_FULL, r->unwound_full },
		{ CC_CNT_VERIFIED, r->health.verified },
		{ CC_CNT_VERIFY_WRONG, r->health.wrong },
	};
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(cnt) && !err; i++) {
		const struct cc_rec_counter c = { .h = { .size = sizeof(c),
							 .kind = CC_REC_COUNTER,
							 .cpu = 0xffff,
							 .aux = cnt[i].what,
							 .ts = ts },
						  .value = cnt[i].value };

		if (cnt[i].value || cnt[i].what <= CC_CNT_UNWOUND_FULL)
			err = tell_record(&r->teller, &c.h, sizeof(c));
	}
	return err;
}

int resolver_feed(struct resolver *r, const struct cc_rec *rec, size_t len, cc_record_fn *out,
		  void *ctx)
{
	int err = 0;

	if (len < sizeof(*rec))
		return 0;
	r->teller.out = out;
	r->teller.ctx = ctx;
	r->teller.ts = rec->ts;
	switch (rec->kind) {
	case CC_REC_SNAP:
		return stacks_snap(r, (const struct cc_rec_snap *)rec, len);
	case CC_REC_CHAIN:
		return stacks_chain(r, (const struct cc_rec_chain *)rec, len);
	case CC_REC_EXTRA:
		return feed_extra(r, rec, len);
	case CC_REC_STACK:
		return feed_stack(r, rec, len);
	case CC_REC_GO_TASK:
		return feed_go_task(r, rec, len);
	case CC_REC_OPEN_TASK:
		return feed_open(r, rec, len);
	case CC_REC_SAMPLE:
		return feed_sample(r, rec, len);
	case CC_REC_TASK:
		note_task(r, rec, len);
		break;
	case CC_REC_TARGET:
		/* read its mappings while it lives */
		if (len >= sizeof(struct cc_rec_target) &&
		    !procs_get(r->procs, ((const struct cc_rec_target *)rec)->tgid))
			return -ENOMEM;
		break;
	case CC_REC_TICK:
		err = tell_places(&r->teller, r->procs, rec->flags & 1 ? PLACES_WAIT_MS : 0);
		procs_tick(r->procs);
		if (!err)
			err = tell_counters(r, rec->ts);
		break;
	}
	return err ? err : tell_record(&r->teller, rec, len);
}
