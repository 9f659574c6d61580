/* SPDX-License-Identifier: Apache-2.0 */
#include "go_seed.h"

#include "go_check.h"
#include "iter.h"
#include "pidns.h"
#include "wait_class.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "criticast.skel.h"

#define ALL_MAX 65536u /* goroutines that are looked at */
#define G_BYTES 512u   /* of each */
#define REASON_IO 2
#define STATUS_SCAN 0x1000u
#define STATUS_WAITING 4u
#define TASK_SEEN 2

/* waitsince stands before waitreason in every version. */
#define WAITSINCE_BACK 8

struct list {
	uint64_t *g;
	size_t cnt;
};

static int read_list(const struct go_proc *p, struct list *ret)
{
	uint64_t slice[3];
	*ret = (struct list){ 0 };
	if (!p->target.allgs || !go_check_read(p, p->target.allgs, slice, sizeof(slice)) ||
	    !slice[1] || slice[1] > slice[2])
		return 0;
	ret->cnt = CC_MIN(slice[1], (uint64_t)ALL_MAX);
	ret->g = malloc(ret->cnt * sizeof(*ret->g));
	if (!ret->g)
		return -ENOMEM;
	if (!go_check_read(p, slice[0], ret->g, ret->cnt * sizeof(*ret->g)))
		ret->cnt = 0;
	return 0;
}

static uint64_t word(const uint8_t *g, uint32_t off)
{
	uint64_t v = 0;
	if (off != GO_NO_FIELD && off + sizeof(v) <= G_BYTES)
		memcpy(&v, g + off, sizeof(v));
	return v;
}

/* What it waits for, as far as its g tells: of a channel the first that it waits in. */
static uint64_t object_of(const struct go_proc *p, const uint8_t *g, uint32_t cls)
{
	const struct go_layout *at = &p->target.layout;
	uint64_t sudog = word(g, at->g_waiting), c = 0;
	if (cls != WAIT_CHAN || !sudog || at->sudog_c == GO_NO_FIELD ||
	    !go_check_read(p, sudog + at->sudog_c, &c, sizeof(c)))
		return 0;
	return c;
}

static int tell(const struct go_proc *p, const uint8_t *g, uint64_t goid, cc_ns now,
		struct rec_buf *b)
{
	const struct go_layout *at = &p->target.layout;
	struct cc_rec_go_task r = {
		.h = { .size = sizeof(r),
		       .kind = CC_REC_GO_TASK,
		       .cpu = 0xffff,
		       .aux = TASK_SEEN,
		       .ts = now },
		.goid = goid,
		.parent_goid = word(g, at->g_parentgoid),
		.tgid = p->tgid,
		.start_pc = word(g, at->g_startpc),
		.go_pc = word(g, at->g_gopc),
	};
	return rec_buf_put(b, &r.h, sizeof(r));
}

/* @g: the first bytes of what lies at @addr. 1: it waits and was taken. */
static int take(struct loader *l, const struct go_proc *p, uint64_t addr, const uint8_t *g,
		cc_ns now, struct rec_buf *b)
{
	const struct go_layout *at = &p->target.layout;
	uint64_t goid = word(g, at->g_goid), since = word(g, at->g_waitreason - WAITSINCE_BACK);
	uint32_t status = (uint32_t)word(g, at->g_atomicstatus) & ~STATUS_SCAN;
	uint8_t reason = (uint8_t)word(g, at->g_waitreason);
	if (status != STATUS_WAITING || !goid || reason >= p->target.reasons.cnt)
		return 0;
	struct cc_bpf_go_key key = { .g = addr, .tgid = pidns_global(l, p->tgid) };
	struct cc_bpf_go_state s = {
		.goid = goid,
		.out = since && since < now ? since : now,
		.about = since && since < now,
		.reason = reason,
		.object = object_of(p, g, p->target.reasons.cls[reason]),
		.state = CC_BPF_GO_PARKED,
		.what = CC_BPF_GO_IS_PLAIN,
	};
	if (bpf_map_update_elem(bpf_map__fd(l->skel->maps.go_states), &key, &s, BPF_NOEXIST))
		return errno == EEXIST || errno == E2BIG ? 0 : -errno;
	int err = tell(p, g, goid, now, b);
	return err ? err : 1;
}

int go_seed_parked(struct loader *l, const struct go_proc *p, struct rec_buf *b)
{
	struct list all;
	uint8_t g[G_BYTES];
	int err = read_list(p, &all), taken = 0;
	cc_ns now = loader_now();
	for (size_t i = 0; i < all.cnt && !err; i++) {
		if (!go_check_read(p, all.g[i], g, sizeof(g)))
			continue;
		int n = take(l, p, all.g[i], g, now, b);
		err = n < 0 ? n : 0;
		taken += n > 0;
	}
	free(all.g);
	return err ? err : taken;
}
