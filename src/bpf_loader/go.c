/* SPDX-License-Identifier: Apache-2.0 */
#include "go.h"

#include "go_attach.h"
#include "go_seed.h"
#include "iter.h"
#include "pidns.h"
#include "stream.h"
#include "targets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "criticast.skel.h"

static const char *const tier_names[] = {
	[LOADER_GO_AUTO] = "auto",   [LOADER_GO_OFF] = "off",   [LOADER_GO_ID] = "id",
	[LOADER_GO_WAITS] = "waits", [LOADER_GO_FULL] = "full",
};

const char *loader_go_tier_name(enum loader_go_tier t)
{
	return (size_t)t < ARRAY_SIZE(tier_names) ? tier_names[t] : "?";
}

bool go_expects(const struct loader_opts *o)
{
	const struct go_target *t;
	struct cc_err why;
	uint32_t *pids = NULL;
	size_t cnt = 0;
	bool is = false;
	if (!o->go.find || o->go.tier == LOADER_GO_OFF)
		return false;
	for (uint32_t i = 0; i < o->pid_cnt && !is; i++)
		is = o->go.find(o->go.ctx, o->pids[i], &t, &why) == 1;
	if (o->port_cnt && !is && !sock_find_ports(o->ports, o->port_cnt, NULL, &pids, &cnt))
		for (size_t i = 0; i < cnt && !is; i++)
			is = o->go.find(o->go.ctx, pids[i], &t, &why) == 1;
	free(pids);
	return is;
}

int go_prepare(struct loader *l, bool use)
{
	struct bpf_program *progs[CC_BPF_GO_AT_CNT];
	size_t cnt = go_programs(l, progs);
	go_done(l);
	use = use && l->o.go.find && l->o.go.tier != LOADER_GO_OFF;
	bpf_program__set_autoload(l->skel->progs.go_threads, use);
	for (size_t i = 0; i < cnt; i++)
		bpf_program__set_autoload(progs[i], use);
	if (!use)
		return 0;
	l->go = calloc(1, sizeof(*l->go));
	if (!l->go)
		return -ENOMEM;
	l->go->multi = uprobe_has_multi();
	for (size_t i = 0; i < cnt && l->go->multi; i++)
		bpf_program__set_expected_attach_type(progs[i], (enum bpf_attach_type)UPROBE_MULTI);
	return 0;
}

/* ---- processes ------------------------------------------------------------------------------ */

int go_note(struct go_side *g, const char *fmt, ...)
{
	char text[400];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return stream_note(text, rec_buf_put, &g->notes);
}

static void count_procs(struct loader *l)
{
	__u32 cnt = 0;
	for (size_t i = 0; i < l->go->proc_cnt; i++)
		cnt += l->go->procs[i]->known;
	l->skel->bss->go_proc_cnt = cnt;
}

/* Forgets the goroutines of @tgid, which is gone or another program now. */
void go_sweep(struct loader *l, uint32_t tgid)
{
	int fd = bpf_map__fd(l->skel->maps.go_states);
	struct cc_bpf_go_key k, next;
	bool have = false;
	tgid = pidns_global(l, tgid);
	while (!bpf_map_get_next_key(fd, have ? &k : NULL, &next)) {
		if (have && k.tgid == tgid)
			bpf_map_delete_elem(fd, &k);
		k = next;
		have = true;
	}
	if (have && k.tgid == tgid)
		bpf_map_delete_elem(fd, &k);
}

/* Tells the kernel programs of @p, or what changed. */
int go_tell_kernel(struct loader *l, struct go_proc *p)
{
	struct cc_bpf_go c;
	uint32_t tgid = pidns_global(l, p->tgid);
	go_config(p, tgid, &c);
	if (bpf_map_update_elem(bpf_map__fd(l->skel->maps.go_known), &p->slot, &c, BPF_ANY) ||
	    bpf_map_update_elem(bpf_map__fd(l->skel->maps.go_procs), &tgid, &p->slot, BPF_ANY))
		return -errno;
	p->known = true;
	count_procs(l);
	return 0;
}

void go_untell_kernel(struct loader *l, struct go_proc *p)
{
	static const struct cc_bpf_go none;
	uint32_t tgid = pidns_global(l, p->tgid);
	bpf_map_update_elem(bpf_map__fd(l->skel->maps.go_known), &p->slot, &none, BPF_ANY);
	bpf_map_delete_elem(bpf_map__fd(l->skel->maps.go_procs), &tgid);
	p->known = false;
	count_procs(l);
}

static void drop(struct loader *l, size_t idx)
{
	struct go_side *g = l->go;
	struct go_proc *p = g->procs[idx];
	go_detach(p);
	go_untell_kernel(l, p);
	g->procs[idx] = g->procs[--g->proc_cnt];
	go_sweep(l, p->tgid);
	free(p);
}

/* The first place that nobody has; CC_BPF_GO_PROCS: none is left. */
static uint32_t free_slot(const struct go_side *g)
{
	uint32_t slot = 0;
	for (size_t i = 0; i < g->proc_cnt; i++) {
		if (g->procs[i]->slot == slot) {
			slot++;
			i = (size_t)-1; /* from the start */
		}
	}
	return slot;
}

static int push(struct loader *l, struct go_proc *p)
{
	struct go_side *g = l->go;
	if (g->proc_cnt == g->proc_cap) {
		size_t cap = g->proc_cap ? 2 * g->proc_cap : 8;
		struct go_proc **v = realloc(g->procs, cap * sizeof(*v));
		if (!v)
			return -ENOMEM;
		g->procs = v;
		g->proc_cap = cap;
	}
	g->procs[g->proc_cnt++] = p;
	return 0;
}

int go_probe_all(struct loader *l, struct go_proc *p, struct cc_err *why)
{
	go_watch_measure(l->go);
	int err = go_attach(l, p, why);
	if (err)
		return err;
	err = go_tell_kernel(l, p); /* from now on waits are told */
	if (!err)
		err = go_seed_parked(l, p, &l->go->notes);
	p->seeded = err > 0;
	if (err >= 0)
		return 0;
	loader_err(why, "its goroutines cannot be noted: %s", strerror(-err));
	go_detach(p);
	return err;
}

/* ---- what is given up, and taken up again -----------------------------------------------------
 */

int go_change(struct loader *l, struct go_proc *p, uint32_t level)
{
	struct cc_err why = { .pos = -1 };
	int err;
	if (p->state != LOADER_GO_STATE_ON || p->tier == LOADER_GO_ID)
		return 0;
	if (level == GO_LEVEL_NONE) {
		go_detach(p);
		err = go_tell_kernel(l, p);
		go_sweep(l, p->tgid); /* what parks now is not seen to go on */
		return err;
	}
	if (!p->probe_cnt && go_probe_all(l, p, &why)) {
		p->tier = LOADER_GO_ID;
		return go_note(l->go, "go: pid %u: %s; only which goroutine runs is known", p->tgid,
			       why.msg);
	}
	if (level == GO_LEVEL_THIN)
		go_thin_out(p);
	return go_tell_kernel(l, p);
}

/* ---- finding -------------------------------------------------------------------------------- */

static int take_on(struct loader *l, uint32_t tgid, const struct go_target *t)
{
	struct cc_err why = { .pos = -1 };
	uint32_t slot = free_slot(l->go);
	if (slot == CC_BPF_GO_PROCS)
		return go_note(l->go, "go: pid %u (%s): more than %u Go programs: threads only",
			       tgid, t->version, slot);
	struct go_proc *p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->tgid = tgid;
	p->slot = slot;
	p->multi = l->go->multi;
	p->target = *t;
	p->tier = go_tier_choose(t, l->o.go.tier, l->o.go.force, &why);
	int err = why.msg[0] ? go_note(l->go, "go: pid %u (%s): tier %s: %s", tgid, t->version,
				       loader_go_tier_name(p->tier), why.msg)
			     : 0;
	if (!err)
		err = push(l, p);
	if (err) {
		free(p);
		return err;
	}
	if (t->layout_by != GO_FOUND_NONE)
		err = go_tell_kernel(l, p);
	return err ? err : go_trust(l, p);
}

static int look_at(struct loader *l, uint32_t tgid)
{
	struct cc_err why = { .pos = -1 };
	const struct go_target *t = NULL;
	for (size_t i = 0; i < l->go->proc_cnt; i++) {
		struct go_proc *p = l->go->procs[i];
		if (p->tgid != tgid)
			continue;
		/* an exec takes it out of the kernel's table: this is the program that came by it
		 */
		if (p->known && !go_read_counts(l, p))
			return 0;
		drop(l, i);
		break;
	}
	int is = l->o.go.find(l->o.go.ctx, tgid, &t, &why);
	if (is == -ENOMEM)
		return is;
	if (is < 0)
		return go_note(l->go, "go: pid %u: %s: threads only", tgid, why.msg);
	if (!is)
		return 0;
	if (!t->has_tls || t->layout_by == GO_FOUND_NONE)
		return go_note(l->go, "go: pid %u (%s): %s: threads only", tgid, t->version,
			       t->has_tls ? "no offsets are known for this version"
					  : "it does not say where it keeps the running goroutine");
	return take_on(l, tgid, t);
}

int go_want(struct loader *l, uint32_t tgid)
{
	struct go_side *g = l->go;
	if (!g)
		return 0;
	if (g->wanted_cnt == g->wanted_cap) {
		size_t cap = g->wanted_cap ? 2 * g->wanted_cap : 16;
		uint32_t *v = realloc(g->wanted, cap * sizeof(*v));
		if (!v)
			return -ENOMEM;
		g->wanted = v;
		g->wanted_cap = cap;
	}
	g->wanted[g->wanted_cnt++] = tgid;
	return 0;
}

int go_seed(struct loader *l)
{
	int err = 0;
	if (!l->go)
		return 0;
	while (!err && l->go->seeded < l->target_cnt)
		err = go_want(l, l->targets[l->go->seeded++].tgid);
	return err ? err : go_work(l, NULL, NULL);
}

int go_work(struct loader *l, cc_record_fn *fn, void *ctx)
{
	struct go_side *g = l->go;
	int err = 0;
	if (!g)
		return 0;
	for (size_t i = 0; i < g->wanted_cnt && !err; i++)
		err = look_at(l, g->wanted[i]);
	g->wanted_cnt = 0;
	for (size_t i = g->proc_cnt; i-- > 0 && !err;) {
		if (!targets_find(l, g->procs[i]->tgid))
			drop(l, i);
		else
			err = go_trust(l, g->procs[i]);
	}
	if (!err && fn && g->notes.len) {
		err = rec_buf_give(&g->notes, fn, ctx);
		g->notes.len = 0;
	}
	return err < 0 ? err : 0;
}

enum loader_go_tier go_tier_now(const struct loader *l, const struct go_proc *p)
{
	if (p->state == LOADER_GO_STATE_WRONG)
		return LOADER_GO_OFF;
	return l->go->watch.choice.level == GO_LEVEL_NONE ? LOADER_GO_ID : p->tier;
}

int loader_go_procs(struct cc_source *s, struct loader_go_proc *ret, uint32_t max)
{
	struct loader *l = (struct loader *)s;
	uint32_t cnt = 0;
	for (size_t i = 0; l->go && i < l->go->proc_cnt && cnt < max; i++) {
		struct go_proc *p = l->go->procs[i];
		if (p->state != LOADER_GO_STATE_WRONG)
			go_read_counts(l, p);
		ret[cnt++] = (struct loader_go_proc){
			.tgid = p->tgid,
			.tier = go_tier_now(l, p),
			.state = p->state,
			.good = p->good,
			.bad = p->bad,
			.probe_cnt = p->probe_cnt,
			.multi = l->go->multi,
			.trap_ns = l->go->watch.price.trap,
			.nop_ns = l->go->watch.price.nop,
			.target = &p->target,
		};
	}
	return (int)cnt;
}

void go_done(struct loader *l)
{
	struct go_side *g = l->go;
	if (!g)
		return;
	for (size_t i = 0; i < g->proc_cnt; i++) {
		go_detach(g->procs[i]);
		free(g->procs[i]);
	}
	free(g->procs);
	free(g->wanted);
	rec_buf_done(&g->notes);
	free(g);
	l->go = NULL;
}
