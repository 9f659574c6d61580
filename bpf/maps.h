/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * maps: what all our programs share: the configuration, who is traced, the two rings and the
 * counters. Everything is __weak, so that each .bpf.c loads alone and all link into one object.
 *
 * Rules for writers: reserve, fill every byte, commit with ring_commit(); on a failed reserve count
 * (cnt_add or rec_lost) and go on; never wait, never wake user space for one record.
 */
#ifndef CC_BPF_MAPS_H
#define CC_BPF_MAPS_H

#include "kernel.h" /* first: the others need its types */

#include "config.h"
#include "event.h"
#include "raw_stack.h"

#include <bpf/bpf_helpers.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

const volatile struct cc_bpf_config cfg __weak;

/* Processes that are traced, by tgid. User space adds and removes at run time; a fork adds the
 * child (--pid's prefork workers), an exit of the last thread removes. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, struct cc_bpf_target);
} targets __weak SEC(".maps");

/* EPISODE, EXTRA, SNAP, SOCKOP, SAMPLE. The loader sets the size. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20);
} events __weak SEC(".maps");

/* TASK, LISTEN, TARGET, and REQ when there are many: few, and a storm of the others must not drop
 * them. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} control __weak SEC(".maps");

/* As long as user space keeps up, records go through rings that are small enough to stay in the
 * caches: in those above, larger than they are, each meets lines and pages that nobody had for
 * long, which is most of what telling it costs. One that finds the small ring full goes to the
 * large one after all, and so do all behind it until user space has drained both, see pair_over().
 * The loader sets the sizes. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 256 << 10);
} events_small __weak SEC(".maps");

struct { /* REQ alone */
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 256 << 10);
} requests __weak SEC(".maps");

volatile __u64 events_over __weak, requests_over __weak;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, CC_BPF_CNT_MAX);
	__type(key, __u32);
	__type(value, __u64);
} counters __weak SEC(".maps");

/* Losses of records that no task's lost field carries, by record kind: user space tells them as
 * LOSS, since the ring that would is the full one. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, CC_REC_KIND_CNT);
	__type(key, __u32);
	__type(value, struct cc_bpf_loss);
} losses __weak SEC(".maps");

/* When user space was last woken for a full ring: one wake-up costs 4.7 us, so one per filling. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} ring_woken __weak SEC(".maps");

static __always_inline void cnt_add(__u32 cnt, __u64 n)
{
	__u64 *v = bpf_map_lookup_elem(&counters, &cnt);

	if (v)
		*v += n; /* per CPU; a nested run may lose one */
}

/* Counts a record of @kind and @bytes that found its ring full. */
static __always_inline void rec_lost(__u32 kind, __u32 bytes, __u64 now)
{
	struct cc_bpf_loss *l = bpf_map_lookup_elem(&losses, &kind);

	if (!l)
		return;
	l->last = now;
	l->bytes += bytes;
	l->cnt++;
}

/* A bit for each tgid that was ever traced, by its low bits: most processes of the host are known
 * by it not to be. */
__u64 target_bits __weak;

static __always_inline void target_note(__u32 tgid)
{
	__u64 bit = 1ull << (tgid & 63);

	if (!(target_bits & bit))
		__sync_fetch_and_or(&target_bits, bit);
}

static __always_inline bool target_maybe(__u32 tgid) { return target_bits >> (tgid & 63) & 1; }

static __always_inline int target_put(__u32 tgid, const struct cc_bpf_target *t, __u64 flags)
{
	target_note(tgid);
	return (int)bpf_map_update_elem(&targets, &tgid, t, flags);
}

/* Is process @tgid traced? About 20 ns, as a rule next to nothing when it is not. */
static __always_inline const struct cc_bpf_target *target_of(__u32 tgid)
{
	return target_maybe(tgid) ? bpf_map_lookup_elem(&targets, &tgid) : NULL;
}

static __always_inline bool is_target(__u32 tgid) { return target_of(tgid) != NULL; }

/* Commits to @ring. User space polls every 20 ms; it is woken only at a quarter full, once. One
 * record in eight looks, by its time: a look costs as much as the commit. */
static __always_inline void ring_commit(void *ring, void *rec, __u64 quarter, __u64 now)
{
	__u64 flags = BPF_RB_NO_WAKEUP;
	__u32 zero = 0;
	__u64 *woken;

	if (!(now * 0x9e3779b97f4a7c15ull >> 61) &&
	    bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) > quarter) {
		woken = bpf_map_lookup_elem(&ring_woken, &zero);
		if (woken && now - *woken > 2000000) { /* it needs up to 1 ms to come */
			*woken = now;
			flags = BPF_RB_FORCE_WAKEUP;
		}
	}
	bpf_ringbuf_submit(rec, flags);
}

/* The large ring takes over from the small one, from where it stands now: *over is that position,
 * and one more. User space makes it 0 when it has drained both; a program that looked just before
 * that still writes to the large one, and later ones on its CPU to the small one. By the position
 * such a straggler is known from what comes after the small ring's. */
static __always_inline void pair_over(void *large, volatile __u64 *over)
{
	if (!*over)
		__sync_val_compare_and_swap(over, 0, bpf_ringbuf_query(large, BPF_RB_PROD_POS) + 1);
}

/* Room for a record in @small, or in @large. */
static __always_inline void *pair_reserve(void *small, void *large, volatile __u64 *over,
					  __u64 size)
{
	void *r = *over ? NULL : bpf_ringbuf_reserve(small, size, 0);

	if (r)
		return r;
	pair_over(large, over);
	return bpf_ringbuf_reserve(large, size, 0);
}

static __always_inline void *events_reserve(__u64 size)
{
	return pair_reserve(&events_small, &events, &events_over, size);
}

static __always_inline void *req_reserve(void)
{
	return pair_reserve(&requests, &control, &requests_over, sizeof(struct cc_rec_req));
}

/* Sends @size bytes at @data. 0 or an error. */
static __always_inline long events_output(void *data, __u64 size)
{
	if (!events_over && !bpf_ringbuf_output(&events_small, data, size, BPF_RB_NO_WAKEUP))
		return 0;
	pair_over(&events, &events_over);
	return bpf_ringbuf_output(&events, data, size, BPF_RB_NO_WAKEUP);
}

static __always_inline void events_commit(void *rec, __u64 now)
{
	if (events_over)
		ring_commit(&events, rec, cfg.events_quarter, now);
	else
		bpf_ringbuf_submit(rec, BPF_RB_NO_WAKEUP);
}

static __always_inline void req_commit(void *rec, __u64 now)
{
	if (requests_over)
		ring_commit(&control, rec, cfg.control_quarter, now);
	else
		bpf_ringbuf_submit(rec, BPF_RB_NO_WAKEUP);
}

static __always_inline void control_commit(void *rec, __u64 now)
{
	ring_commit(&control, rec, cfg.control_quarter, now);
}

/* The header of a record. Constant arguments fold into two stores. */
static __always_inline void rec_init(struct cc_rec *h, __u16 size, __u8 kind, __u8 flags, __u16 aux,
				     __u64 ts)
{
	h->size = size;
	h->kind = kind;
	h->flags = flags;
	h->cpu = (__u16)bpf_get_smp_processor_id();
	h->aux = aux;
	h->ts = ts;
}

/* Cgroup id (v2 hierarchy) of a task; 0: not known. */
static __always_inline __u64 task_cgroup(struct task_struct *t)
{
	return BPF_CORE_READ(t, cgroups, dfl_cgrp, kn, id);
}

#endif
