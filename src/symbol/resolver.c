/* SPDX-License-Identifier: Apache-2.0 */
#include "resolver.h"
#include "keyset.h"
#include "pending.h"
#include "teller.h"
#include "unwinder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PLACES_WAIT_MS 2000   /* at the end, for the answers that are on their way */
#define STACKS_MAX (1u << 18) /* keys told; 4 MiB at most */

struct resolver {
	struct file_cache *files;
	struct procs *procs;
	struct unwinder *unwinder;
	struct pending *pending;
	struct teller teller;
	struct keyset stacks; /* told before */
	struct resolver_health health;
	uint64_t unwound, unwound_full; /* of blocked tasks: CC_CNT_UNWOUND* */
};

int resolver_new(const struct resolver_opts *o, struct resolver **ret)
{
	struct resolver *r = calloc(1, sizeof(*r));
	int err = r ? 0 : -ENOMEM;

	if (!err) {
		keyset_init(&r->stacks, STACKS_MAX);
		err = file_cache_new(&r->files);
	}
	if (!err)
		err = procs_new(&r->procs);
	if (!err)
		err = unwind_rows_new(r->files, &r->unwinder);
	if (!err)
		err = pending_new(&r->pending);
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
	ret->bytes = file_cache_mem(r->files) + procs_mem(r->procs) +
		     (r->teller.kernel ? kallsyms_mem(r->teller.kernel) : 0) +
		     (r->stacks.cap + r->teller.named.cap) * sizeof(uint64_t);
}

/* Tells the stack if it is new. *ret_key: its key, never 0. @epoch only says when an old stack's
 * addresses have come to mean other things. Returns 1 if it was told now, 0 if it was known. */
static int tell_stack(struct resolver *r, uint8_t flags, uint32_t tgid, uint32_t epoch,
		      const __u64 *ip, size_t cnt, uint64_t *ret_key)
{
	union {
		__u64 room[sizeof(struct cc_rec_stack) / sizeof(__u64) + CC_STACK_MAX];
		struct cc_rec_stack s;
	} rec;
	uint64_t key = hash_add(hash_add(0, flags), tgid), known;
	size_t size = sizeof(rec.s) + cnt * sizeof(*ip);
	int err;

	for (size_t i = 0; i < cnt; i++)
		key = hash_add(key, ip[i]);
	key = key ? key : 1;
	*ret_key = key;
	known = hash_add(key, epoch);
	err = keyset_add(&r->stacks, known ? known : 1);
	if (err <= 0)
		return err;
	rec.s = (struct cc_rec_stack){
		.h = { .size = (uint16_t)size,
		       .kind = CC_REC_STACK,
		       .flags = flags,
		       .cpu = 0xffff,
		       .aux = (uint16_t)cnt,
		       .ts = r->teller.ts },
		.key = key,
		.tgid = tgid,
	};
	memcpy(rec.s.ip, ip, cnt * sizeof(*ip));
	r->health.stacks++;
	err = tell_record(&r->teller, &rec.s.h, size);
	return err ? err : 1;
}

static void count_end(struct resolver_health *h, const struct unwind_out *o, bool full)
{
	h->user++;
	h->user_full += full;
	h->guessed += o->guessed;
	switch (o->end) {
	case UNWIND_START:
		break;
	case UNWIND_CUT:
		h->cut++;
		break;
	case UNWIND_NO_MAP:
		h->no_map++;
		break;
	case UNWIND_NO_CFI:
		h->no_cfi++;
		break;
	case UNWIND_BAD:
	case UNWIND_DEEP:
	case UNWIND_END_CNT:
		h->bad++;
		break;
	}
}

static int user_stack(struct resolver *r, const struct cc_rec_snap *s, uint64_t *ret_key)
{
	struct proc *proc = procs_get(r->procs, s->owner_tgid);
	struct unwind_in in;
	struct unwind_out o;
	bool full;
	int err;

	if (!proc)
		return -ENOMEM;
	if (s->h.ts < proc->born) /* of the program before an exec */
		return 0;
	unwind_in_from_snap(s, &in);
	r->unwinder->ops->unwind(r->unwinder, &proc->maps, &in, &o);
	if (o.miss && procs_reread(r->procs, proc))
		r->unwinder->ops->unwind(r->unwinder, &proc->maps, &in, &o);
	full = o.end == UNWIND_START && !o.guessed;
	count_end(&r->health, &o, full);
	if (s->h.aux == CC_SNAP_BLOCKED) {
		r->unwound++;
		r->unwound_full += full;
	}
	if (!o.cnt)
		o.ip[o.cnt++] = s->ip; /* where it stood is known all the same */
	err = tell_stack(r,
			 (uint8_t)((full ? CC_ST_COMPLETE : 0) | (o.guessed ? CC_ST_GUESSED : 0)),
			 s->owner_tgid, proc->epoch, o.ip, o.cnt, ret_key);
	return err <= 0 ? err : tell_user_frames(&r->teller, proc, o.ip, o.cnt);
}

static int kernel_stack(struct resolver *r, const struct cc_rec_snap *s, uint64_t *ret_key)
{
	size_t skip = probe_frames(&r->teller, s->data, s->kframe_cnt), cnt = s->kframe_cnt - skip;
	bool full = s->kframe_cnt < CC_SNAP_KFRAMES;
	int err;

	r->health.kernel++;
	err = tell_stack(r, (uint8_t)(CC_ST_KERNEL | (full ? CC_ST_COMPLETE : 0)), 0, 0,
			 s->data + skip, cnt, ret_key);
	return err <= 0 ? err : tell_kernel_frames(&r->teller, s->data + skip, cnt);
}

static bool well_formed(const struct cc_rec_snap *s, size_t len)
{
	return len >= sizeof(*s) && s->kframe_cnt <= CC_SNAP_KFRAMES &&
	       s->byte_cnt <= CC_SNAP_MAX &&
	       s->kframe_cnt * sizeof(s->data[0]) + s->byte_cnt <= len - sizeof(*s);
}

static int feed_snap(struct resolver *r, const struct cc_rec_snap *s, size_t len)
{
	/* a sample has no number: the next SAMPLE of its thread is its */
	static const uint8_t kinds[] = { [CC_SNAP_BLOCKED] = PENDING_EXTRA,
					 [CC_SNAP_WAKER] = PENDING_EXTRA,
					 [CC_SNAP_SAMPLE] = PENDING_SAMPLE,
					 [CC_SNAP_OPEN] = PENDING_OPEN };
	uint64_t ustack = 0, kstack = 0;
	struct pending_keys *k;
	int err;

	if (!well_formed(s, len) || s->h.aux >= ARRAY_SIZE(kinds)) {
		r->health.damaged++;
		return 0;
	}
	err = s->owner_tgid ? user_stack(r, s, &ustack) : 0;
	if (!err && s->kframe_cnt)
		err = kernel_stack(r, s, &kstack);
	if (err)
		return err;
	k = pending_put(r->pending, kinds[s->h.aux], s->tid,
			s->h.aux == CC_SNAP_SAMPLE ? 0 : s->seq);
	if (s->h.aux == CC_SNAP_WAKER) {
		k->waker_ustack = ustack;
		k->waker_kstack = kstack;
	} else {
		k->tgid = s->owner_tgid;
		k->ustack = ustack;
		k->kstack = kstack;
	}
	return 0;
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
	const struct cc_rec_stack *s = (const struct cc_rec_stack *)rec;
	struct proc *proc;
	int err;

	if (len < sizeof(*s) || s->h.aux > CC_STACK_MAX ||
	    len - sizeof(*s) < s->h.aux * sizeof(s->ip[0])) {
		r->health.damaged++;
		return 0;
	}
	err = tell_record(&r->teller, rec, len);
	if (err || s->h.flags & CC_ST_KERNEL)
		return err;
	proc = procs_get(r->procs, s->tgid);
	return proc ? tell_user_frames(&r->teller, proc, s->ip, s->h.aux) : -ENOMEM;
}

/* A goroutine is called by the function it began with. */
static int feed_go_task(struct resolver *r, const struct cc_rec *rec, size_t len)
{
	const struct cc_rec_go_task *t = (const struct cc_rec_go_task *)rec;
	struct proc *proc = NULL;
	int err = 0;

	if (len >= sizeof(*t) && t->start_pc) {
		proc = procs_get(r->procs, t->tgid);
		err = proc ? tell_user_frames(&r->teller, proc, &t->start_pc, 1) : -ENOMEM;
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
	const struct cc_rec_counter c[] = {
		{ .h = { .size = sizeof(c[0]),
			 .kind = CC_REC_COUNTER,
			 .cpu = 0xffff,
			 .aux = CC_CNT_UNWOUND,
			 .ts = ts },
		  .value = r->unwound },
		{ .h = { .size = sizeof(c[0]),
			 .kind = CC_REC_COUNTER,
			 .cpu = 0xffff,
			 .aux = CC_CNT_UNWOUND_FULL,
			 .ts = ts },
		  .value = r->unwound_full },
	};
	int err = tell_record(&r->teller, &c[0].h, sizeof(c[0]));

	return err ? err : tell_record(&r->teller, &c[1].h, sizeof(c[1]));
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
		return feed_snap(r, (const struct cc_rec_snap *)rec, len);
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
