/* SPDX-License-Identifier: Apache-2.0 */
#include "load.h"
#include "go.h"
#include "pidns.h"
#include "refused.h"
#include "rights.h"
#include "rules.h"
#include "sample.h"
#include "targets.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "criticast.skel.h"

#define STOLEN_MIN_NS 100000u
#define CONTROL_BYTES (8u << 20)
/* Of the rings before the two: of a CPU's second cache half or less, and 20 ms of a busy server. */
#define SMALL_BYTES (256u << 10)
/* Snapshots per CPU and 20 ms, at ~10 us of user space each: a storm of slow waits costs at most
 * half of what it would, a busy server is not touched. */
#define SNAP_BURST 128u
/* The same of goroutines, at 0.3 us of the server each. */
#define GO_STACK_BURST 64u

void loader_err(struct cc_err *err, const char *fmt, ...)
{
	va_list ap;
	if (!err)
		return;
	err->pos = -1;
	va_start(ap, fmt);
	vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
}

/* ---- what this kernel has ------------------------------------------------------------------- */

bool load_has_tracepoint(const struct btf *kernel, const char *name)
{
	char type[80];
	snprintf(type, sizeof(type), "btf_trace_%s", name);
	return btf__find_by_name_kind(kernel, type, BTF_KIND_TYPEDEF) > 0;
}

/* Does sched_switch tell prev_state? Added as fourth argument in 5.18 (fa2c3254d7cf). */
static bool has_prev_state(const struct btf *kernel)
{
	int id = btf__find_by_name_kind(kernel, "btf_trace_sched_switch", BTF_KIND_TYPEDEF);
	const struct btf_type *t = id > 0 ? btf__type_by_id(kernel, (__u32)id) : NULL;
	if (t)
		t = btf__type_by_id(kernel, t->type); /* pointer */
	if (t)
		t = btf__type_by_id(kernel,
				    t->type); /* to a function: context, then the arguments */
	return t && btf_is_func_proto(t) && btf_vlen(t) >= 5;
}

void load_functions(uint64_t fn[CC_BPF_FN_CNT])
{
#define X(name) #name,
	static const char *const names[] = { CC_BPF_FUNCTIONS(X) };
#undef X
	char line[512];
	size_t found = 0;
	memset(fn, 0, CC_BPF_FN_CNT * sizeof(*fn));
	FILE *f = fopen("/proc/kallsyms", "re");
	if (!f)
		return;
	/* "ffffffff81748620 t inotify_poll[\t[module]]": 200,000 lines, so no scanf */
	while (found < CC_BPF_FN_CNT && fgets(line, sizeof(line), f)) {
		char *name = strchr(line, ' ');
		name = name ? strchr(name + 1, ' ') : NULL;
		if (!name)
			continue;
		name[1 + strcspn(name + 1, "\t\n")] = 0;
		for (size_t i = 0; i < CC_BPF_FN_CNT; i++)
			if (!strcmp(name + 1, names[i])) {
				fn[i] = strtoull(line, NULL, 16);
				found++;
			}
	}
	fclose(f);
}

/* ---- one try -------------------------------------------------------------------------------- */

static uint64_t ring_size(uint64_t want)
{
	uint64_t bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	while (bytes < want && bytes < (1ull << 31))
		bytes *= 2;
	return bytes;
}

static void set_config(struct loader *l, const struct btf *kernel)
{
	/* .rodata is const volatile for the programs only */
	struct cc_bpf_config *c = (struct cc_bpf_config *)&l->skel->rodata->cfg;
	*c = (struct cc_bpf_config){
		.min_block_ns = l->o.min_block_ns,
		.stack_min_ns = l->o.stack_min_ns,
		.stolen_min_ns = STOLEN_MIN_NS,
		.events_quarter = l->o.ring_bytes / 4,
		.control_quarter = CONTROL_BYTES / 4,
		.sample_n = l->o.sample_n,
		.snap_bytes = l->o.snap_bytes,
		.stack_tier = l->stack_tier,
		.req_tier = l->req_tier,
		.has_prev_state = has_prev_state(kernel),
		.snap_burst = SNAP_BURST,
		.go_stack_burst = GO_STACK_BURST,
		.has_task_kfunc =
			btf__find_by_name_kind(kernel, "bpf_task_from_vpid", BTF_KIND_FUNC) > 0,
		.has_cast_kfunc =
			btf__find_by_name_kind(kernel, "bpf_rdonly_cast", BTF_KIND_FUNC) > 0,
	};
	load_functions((uint64_t *)c->fn);
}

/* What tracing can do without. */
struct optional {
	struct bpf_program *prog;
	const char *tracepoint;
};
#define OPTIONALS 10

static void optional_programs(const struct criticast *s, struct optional ret[OPTIONALS])
{
	const struct optional v[OPTIONALS] = {
		{ s->progs.hrtimer_expire_entry, "hrtimer_expire_entry" },
		{ s->progs.hrtimer_expire_exit, "hrtimer_expire_exit" },
		{ s->progs.timer_expire_entry, "timer_expire_entry" },
		{ s->progs.timer_expire_exit, "timer_expire_exit" },
		{ s->progs.irq_handler_entry, "irq_handler_entry" },
		{ s->progs.irq_handler_exit, "irq_handler_exit" },
		{ s->progs.tcp_retransmit_skb, "tcp_retransmit_skb" },
		{ s->progs.sched_migrate_task, "sched_migrate_task" },
		{ s->progs.task_rename, "task_rename" },
		{ s->progs.vm_unmapped_area, "vm_unmapped_area" },
	};
	memcpy(ret, v, sizeof(v));
}

/* The kernel refused @prog: can it be left out from now on? */
static bool leave_out(struct loader *l, const char *prog)
{
	struct optional v[OPTIONALS];
	optional_programs(l->skel, v);
	for (size_t i = 0; i < OPTIONALS; i++)
		if (!strcmp(bpf_program__name(v[i].prog), prog)) {
			l->left_out |= 1u << i;
			if (!l->left_out_name[0])
				snprintf(l->left_out_name, sizeof(l->left_out_name), "%s", prog);
			return true;
		}
	return false;
}

/* Switches off what this kernel or tier has no use for. */
static void choose_programs(struct loader *l, const struct btf *kernel)
{
	struct criticast *s = l->skel;
	struct optional v[OPTIONALS];
	optional_programs(s, v);
	for (size_t i = 0; i < OPTIONALS; i++)
		if (l->left_out >> i & 1 || !load_has_tracepoint(kernel, v[i].tracepoint))
			bpf_program__set_autoload(v[i].prog, false);
	bool keeps = l->stack_tier == LOADER_STACK_WAKING || l->stack_tier == LOADER_STACK_EAGER;
	bpf_map__set_autocreate(s->maps.snaps, keeps);
	if (l->stack_tier != LOADER_STACK_LATE)
		bpf_program__set_autoload(s->progs.sched_exit_tp, false);
	bpf_program__set_autoload(s->progs.open_task_sleepable, l->iter_sleepable);
	bpf_program__set_autoload(s->progs.open_task, !l->iter_sleepable);
}

struct attempt {
	bool go, sleepable;
	uint32_t rules; /* RULES_* */
};

/* The same attempt with less would not help; -EAGAIN: but without what was refused. */
static bool is_final(int ret) { return !ret || ret == -EPERM || ret == -ENOMEM || ret == -EAGAIN; }

/* -EAGAIN: the kernel refuses a program that tracing can do without, which l has noted. */
static int try_load(struct loader *l, const struct btf *kernel, const struct attempt *a,
		    struct cc_err *err)
{
	l->skel = criticast__open();
	if (!l->skel)
		return -errno;
	l->iter_sleepable = a->sleepable;
	set_config(l, kernel);
	choose_programs(l, kernel);
	rules_prepare(l, a->rules, load_has_tracepoint(kernel, "vm_unmapped_area"));
	sample_prepare(l);
	int ret = bpf_map__set_max_entries(l->skel->maps.events, (__u32)l->o.ring_bytes);
	__u32 small = (__u32)CC_MIN(l->o.ring_bytes, SMALL_BYTES);
	if (!ret)
		ret = bpf_map__set_max_entries(l->skel->maps.events_small, small);
	if (!ret)
		ret = bpf_map__set_max_entries(l->skel->maps.control, CONTROL_BYTES);
	if (!ret)
		ret = bpf_map__set_max_entries(l->skel->maps.requests, small);
	if (!ret)
		ret = pidns_prepare(l, err);
	if (!ret)
		ret = go_prepare(l, a->go);
	if (!ret)
		ret = sock_prepare(l, err);
	((struct cc_bpf_config *)&l->skel->rodata->cfg)->req_tier =
		l->req_tier == LOADER_REQ_NONE ? CC_BPF_REQ_NONE : l->req_tier;
	const char *refused = NULL;
	if (!ret)
		ret = refused_load(l->skel->skeleton, &refused);
	if (!ret)
		ret = sock_attach(l, &refused);
	if (!ret)
		return 0;
	if (refused && (leave_out(l, refused) || sock_refused(l, refused, ret, err)))
		ret = -EAGAIN;
	sock_done(l);
	go_done(l);
	criticast__destroy(l->skel);
	l->skel = NULL;
	return ret;
}

/* ---- tiers ---------------------------------------------------------------------------------- */

static bool tier_possible(enum loader_stack_tier t, const struct btf *kernel)
{
	return t != LOADER_STACK_LATE || load_has_tracepoint(kernel, "sched_exit_tp");
}

/* One tier: with the cache of unwind rules and without, with the sleepable iterator (5.18) and
 * without. */
static int load_tier(struct loader *l, const struct btf *kernel, bool go, struct cc_err *err)
{
	static const uint32_t modes[] = { [LOADER_RULES_OFF] = RULES_OFF,
					  [LOADER_RULES_ON] = RULES_ON,
					  [LOADER_RULES_VERIFY] = RULES_VERIFY };
	uint32_t rules = l->stack_tier == LOADER_STACK_NONE ? RULES_OFF : modes[l->o.rules];
	for (;;) {
		for (int sleepable = 1; sleepable >= 0; sleepable--) {
			const struct attempt a = { go, sleepable, rules };
			int ret = try_load(l, kernel, &a, err);
			if (is_final(ret))
				return ret;
			if (!sleepable && rules == RULES_OFF)
				return ret;
		}
		rules = RULES_OFF;
	}
}

/* Tries the tiers from the best on. */
static int load_tiers(struct loader *l, const struct btf *kernel, bool go, struct cc_err *err)
{
	static const enum loader_stack_tier order[] = { LOADER_STACK_LATE, LOADER_STACK_EAGER,
							LOADER_STACK_NONE };
	bool automatic = l->o.stack_tier == LOADER_STACK_AUTO;
	size_t cnt = automatic ? ARRAY_SIZE(order) : 1;
	int ret = -EOPNOTSUPP;
	for (size_t i = 0; i < cnt && !is_final(ret); i++) {
		l->stack_tier = automatic ? order[i] : l->o.stack_tier;
		if (tier_possible(l->stack_tier, kernel))
			ret = load_tier(l, kernel, go, err);
	}
	return ret;
}

/* What goroutines need is the first to go. */
static int load_best(struct loader *l, const struct btf *kernel, struct cc_err *err)
{
	int ret = load_tiers(l, kernel, true, err);
	if (is_final(ret) || !l->o.go.find || l->o.go.tier == LOADER_GO_OFF)
		return ret;
	l->go_err = ret;
	return load_tiers(l, kernel, false, err);
}

/* Writes the names of the capabilities this process lacks of those tracing needs. */
static bool missing_caps(char *buf, size_t len)
{
	static const struct {
		cap_value_t cap;
		const char *name;
		bool needed;
	} caps[] = {
#define X(cap, needed, gives) { CAP_##cap, "CAP_" #cap, needed },
		CC_RIGHTS(X)
#undef X
	};
	bool any = false;
	buf[0] = 0;
	for (size_t i = 0; i < ARRAY_SIZE(caps); i++)
		if (caps[i].needed && rights_have(caps[i].cap) == RIGHTS_NO) {
			size_t at = strlen(buf);
			snprintf(buf + at, len - at, "%s%s", any ? " and " : "", caps[i].name);
			any = true;
		}
	return any;
}

static int explain(struct loader *l, int ret, struct cc_err *err)
{
	char caps[64];
	if (missing_caps(caps, sizeof(caps))) {
		loader_err(err,
			   "cannot load kernel programs: no %s; run as root, or give the program "
			   "the rights: " CC_RIGHTS_SETCAP,
			   caps);
		return -EPERM;
	}
	if (err && err->msg[0])
		return ret;
	if (l->o.req_tier == LOADER_REQ_SEQ_FN) {
		loader_err(err, "requests: tier 2b: this kernel has no BPF trampolines, or refuses "
				"them; --req-tier auto takes what it has");
		return -EOPNOTSUPP;
	}
	if (ret == -EPERM) {
		loader_err(err,
			   "cannot load kernel programs: the kernel refuses bpf() even with the "
			   "capabilities (lockdown or a container's seccomp); see `criticast env`");
		return ret;
	}
	if (ret == -ENOMEM) {
		loader_err(err,
			   "cannot load kernel programs: out of memory; a smaller --ring may help");
		return ret;
	}
	loader_err(err, "cannot load kernel programs in stack tier %d: %s; see `criticast env`",
		   (int)l->stack_tier, strerror(-ret));
	return -EOPNOTSUPP;
}

/* In the order of attaching: wakes first, so that no switch-in is seen whose wake was not; the
 * socket programs last, so that whoever is seen at work on a socket has no switch unseen after it.
 */
static int attach_all(struct loader *l, struct cc_err *err)
{
	struct criticast *s = l->skel;
	struct {
		struct bpf_program *prog;
		struct bpf_link **link;
	} all[] = {
#define P(name) { s->progs.name, &s->links.name }
		P(vm_unmapped_area),   P(hrtimer_expire_entry), P(hrtimer_expire_exit),
		P(timer_expire_entry), P(timer_expire_exit),    P(tcp_retransmit_skb),
		P(sched_process_fork), P(sched_process_exec),   P(sched_process_exit),
		P(task_rename),        P(sched_waking),         P(sched_exit_tp),
		P(sched_switch),       P(sched_migrate_task),   P(irq_handler_entry),
		P(irq_handler_exit),
#undef P
	};
	int ret = 0;
	for (size_t i = 0; !ret && i < ARRAY_SIZE(all); i++) {
		if (!bpf_program__autoload(all[i].prog))
			continue;
		*all[i].link = bpf_program__attach(all[i].prog);
		if (*all[i].link)
			continue;
		ret = -errno;
		loader_err(err, "cannot attach to %s: %s; see `criticast env`",
			   bpf_program__section_name(all[i].prog), strerror(-ret));
	}
	return ret ? ret : sock_start(l);
}

int load_programs(struct loader *l, const struct loader_opts *asked, struct cc_err *err)
{
	libbpf_set_print(NULL); /* errors are told in @err, once */
	l->o.ring_bytes = ring_size(l->o.ring_bytes);
	struct btf *kernel = btf__load_vmlinux_btf();
	if (!kernel) {
		loader_err(err, "this kernel has no BTF (/sys/kernel/btf/vmlinux); it needs "
				"CONFIG_DEBUG_INFO_BTF=y");
		return -EOPNOTSUPP;
	}
	int ret;
	do
		ret = load_best(l, kernel, err);
	while (ret == -EAGAIN);
	btf__free(kernel);
	if (ret)
		return explain(l, ret, err);
	ret = pidns_learn(l);
	if (!ret)
		ret = targets_add_asked(l, asked, err);
	if (!ret)
		ret = go_seed(l); /* that takes time, so before the rings begin to fill */
	if (!ret)
		ret = attach_all(l, err);
	if (!ret)
		ret = sample_attach(l);
	return ret;
}
