/* SPDX-License-Identifier: Apache-2.0 */
#include "resolver_int.h"

#include <errno.h>
#include <string.h>

/* Tells the stack if it is new. *ret_key: its key, never 0. Returns 1 if it was told now, 0 if it
 * was known. */
static int tell_stack(struct resolver *r, uint8_t flags, uint32_t tgid, uint32_t gen,
		      const __u64 *ip, size_t cnt, uint64_t *ret_key)
{
	union {
		__u64 room[sizeof(struct cc_rec_stack) / sizeof(__u64) + CC_STACK_MAX];
		struct cc_rec_stack s;
	} rec;
	uint64_t key = hash_add(hash_add(0, flags), (uint64_t)gen << 32 | tgid);
	size_t size = sizeof(rec.s) + cnt * sizeof(*ip);
	int err;

	for (size_t i = 0; i < cnt; i++)
		key = hash_add(key, ip[i]);
	key = key ? key : 1;
	*ret_key = key;
	err = keyset_add(&r->stacks, key);
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
		.gen = gen,
	};
	memcpy(rec.s.ip, ip, cnt * sizeof(*ip));
	r->health.stacks++;
	err = tell_record(&r->teller, &rec.s.h, size);
	return err ? err : 1;
}

static void count_user(struct resolver *r, uint16_t what, uint8_t flags)
{
	bool full = flags & CC_ST_COMPLETE;

	r->health.user++;
	r->health.user_full += full;
	r->health.guessed += (flags & CC_ST_GUESSED) != 0;
	if (what == CC_SNAP_BLOCKED) {
		r->unwound++;
		r->unwound_full += full;
	}
}

static void count_end(struct resolver_health *h, enum unwind_end end)
{
	switch (end) {
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

/* The kernel side unwound it too: does it say the same? */
static void verify(struct resolver *r, const struct cc_rec_snap *s, const struct unwind_out *o,
		   uint8_t flags)
{
	uint64_t key = 0;

	for (unsigned int i = 0; i < o->cnt; i++)
		key = hash_add(key, o->ip[i]);
	r->health.verified++;
	r->health.wrong += chain_key(key, s->layout, s->owner_tgid, flags) != s->chain;
}

/* Tells a stack of @proc in @m, and the names of its frames. */
static int tell_user_stack(struct resolver *r, struct proc *proc, struct maps *m, uint8_t flags,
			   const __u64 *ip, size_t cnt, uint64_t *ret_key)
{
	uint32_t gen = procs_stack_gen(proc, m, ip, cnt);
	int err = tell_stack(r, flags, proc->tgid, gen, ip, cnt, ret_key);

	return err <= 0 ? err : tell_user_frames(&r->teller, proc, m, ip, cnt);
}

static void unwind(struct resolver *r, struct maps *m, const struct cc_rec_snap *s,
		   struct unwind_out *ret)
{
	struct unwind_in in;

	unwind_in_from_snap(s, &in);
	in.learn = r->teach.on;
	r->unwinder->ops->unwind(r->unwinder, m, &in, ret);
	if (!ret->cnt)
		ret->ip[ret->cnt++] = s->ip; /* where it stood is known all the same */
}

static int user_stack(struct resolver *r, const struct cc_rec_snap *s, uint64_t *ret_key)
{
	struct proc *proc = procs_get(r->procs, s->owner_tgid);
	struct unwind_out o;
	struct maps *m;
	uint8_t flags = 0;

	if (!proc)
		return -ENOMEM;
	if (s->h.ts < proc->born) /* of the program before an exec */
		return 0;
	m = procs_maps(r->procs, proc, s);
	if (!m) {
		r->health.code_changed++;
		count_user(r, s->h.aux, flags);
		return 0;
	}
	teach_layout(&r->teach, proc, s);
	unwind(r, m, s, &o);
	if (o.miss && !s->change && procs_reread(r->procs, proc))
		unwind(r, m, s, &o);
	flags = (uint8_t)((o.end == UNWIND_START && !o.guessed ? CC_ST_COMPLETE : 0) |
			  (o.guessed ? CC_ST_GUESSED : 0));
	count_user(r, s->h.aux, flags);
	count_end(&r->health, o.end);
	if (m == &proc->now.maps)
		teach_rules(&r->teach, proc, &o, s->miss);
	if (m == &proc->now.maps && o.end == UNWIND_CUT)
		teach_beyond(&r->teach, proc, r->unwinder, s->miss);
	if (s->chain && o.end != UNWIND_CUT) /* else it sees further */
		verify(r, s, &o, flags);
	return tell_user_stack(r, proc, m, flags, o.ip, o.cnt, ret_key);
}

static int kernel_stack(struct resolver *r, const __u64 *ip, size_t cnt, uint64_t *ret_key)
{
	size_t skip = probe_frames(&r->teller, ip, cnt);
	bool full = cnt < CC_SNAP_KFRAMES;
	int err = tell_stack(r, (uint8_t)(CC_ST_KERNEL | (full ? CC_ST_COMPLETE : 0)), 0, 0,
			     ip + skip, cnt - skip, ret_key);

	return err <= 0 ? err : tell_kernel_frames(&r->teller, ip + skip, cnt - skip);
}

static bool well_formed(const struct cc_rec_snap *s, size_t len)
{
	return len >= sizeof(*s) && s->kframe_cnt <= CC_SNAP_KFRAMES &&
	       s->byte_cnt <= CC_SNAP_MAX &&
	       s->kframe_cnt * sizeof(s->data[0]) + s->byte_cnt <= len - sizeof(*s);
}

struct keys {
	uint64_t ustack, kstack; /* 0: none */
};

/* A sample has no number: the next SAMPLE of its thread is its. */
static const uint8_t kinds[] = { [CC_SNAP_BLOCKED] = PENDING_EXTRA,
				 [CC_SNAP_WAKER] = PENDING_EXTRA,
				 [CC_SNAP_SAMPLE] = PENDING_SAMPLE,
				 [CC_SNAP_OPEN] = PENDING_OPEN };

static void keep(struct resolver *r, uint16_t what, uint32_t tid, uint32_t seq, uint32_t tgid,
		 const struct keys *keys)
{
	struct pending_keys *k =
		pending_put(r->pending, kinds[what], tid, what == CC_SNAP_SAMPLE ? 0 : seq);

	if (what == CC_SNAP_WAKER) {
		k->waker_ustack = keys->ustack;
		k->waker_kstack = keys->kstack;
	} else {
		k->tgid = tgid;
		k->ustack = keys->ustack;
		k->kstack = keys->kstack;
	}
}

int stacks_snap(struct resolver *r, const struct cc_rec_snap *s, size_t len)
{
	struct keys keys = { 0 };
	int err;

	if (!well_formed(s, len) || s->h.aux >= ARRAY_SIZE(kinds)) {
		r->health.damaged++;
		return 0;
	}
	err = s->owner_tgid ? user_stack(r, s, &keys.ustack) : 0;
	r->health.kernel += s->kframe_cnt > 0;
	if (!err && s->kframe_cnt)
		err = kernel_stack(r, s->data, s->kframe_cnt, &keys.kstack);
	if (!err)
		keep(r, s->h.aux, s->tid, s->seq, s->owner_tgid, &keys);
	return err;
}

/* ---- unwound in the kernel ------------------------------------------------------------------- */

/* What the kernel's @key stands for, whose frames are among those it has told. */
static uint64_t known(struct resolver *r, uint64_t key)
{
	uint64_t stack = teach_stack(&r->teach, key);

	r->health.chains_unknown += !stack;
	return stack;
}

static int user_chain(struct resolver *r, const struct cc_rec_chain *c, uint64_t *ret_key)
{
	struct proc *proc = procs_get(r->procs, c->owner_tgid);
	struct maps *m;
	int err;

	if (!proc)
		return -ENOMEM;
	m = c->h.ts < proc->born ? NULL : teach_maps(&r->teach, proc, c->layout);
	if (!m) {
		r->health.chains_unknown++;
		return 0;
	}
	count_user(r, c->h.aux, c->h.flags);
	r->health.chains++;
	if (!c->ucnt) {
		*ret_key = known(r, c->ukey);
		return 0;
	}
	err = tell_user_stack(r, proc, m, c->h.flags, c->ip, c->ucnt, ret_key);
	if (!err)
		teach_chain(&r->teach, c->ukey, *ret_key);
	return err;
}

static int kernel_chain(struct resolver *r, const struct cc_rec_chain *c, uint64_t *ret_key)
{
	int err;

	r->health.kernel++;
	if (!c->kcnt) {
		*ret_key = known(r, c->kkey);
		return 0;
	}
	err = kernel_stack(r, c->ip + c->ucnt, c->kcnt, ret_key);
	if (!err)
		teach_chain(&r->teach, c->kkey, *ret_key);
	return err;
}

int stacks_chain(struct resolver *r, const struct cc_rec_chain *c, size_t len)
{
	struct keys keys = { 0 };
	int err;

	if (len < sizeof(*c) || c->ucnt > CC_STACK_MAX || c->kcnt > CC_SNAP_KFRAMES ||
	    (c->ucnt + c->kcnt) * sizeof(c->ip[0]) > len - sizeof(*c) ||
	    c->h.aux >= ARRAY_SIZE(kinds)) {
		r->health.damaged++;
		return 0;
	}
	err = c->ukey ? user_chain(r, c, &keys.ustack) : 0;
	if (!err && c->kkey)
		err = kernel_chain(r, c, &keys.kstack);
	if (!err)
		keep(r, c->h.aux, c->tid, c->seq, c->owner_tgid, &keys);
	return err;
}
