/* SPDX-License-Identifier: Apache-2.0 */
#include "probe.h"

#include "load.h"
#include "rights.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <bpf/btf.h>
#include <bpf/libbpf.h>

#define FIX_ROOT "run as root, or: " CC_RIGHTS_SETCAP

struct list {
	struct loader_probe *probes;
	uint32_t cnt, max;
};

static void add(struct list *l, const struct loader_probe *p)
{
	if (l->cnt < l->max)
		l->probes[l->cnt++] = *p;
}

static void probe_rights(struct list *l)
{
	static const struct {
		cap_value_t cap;
		const char *name;
		bool needed;
		const char *gives;
	} caps[] = {
#define X(cap, needed, gives) { CAP_##cap, "CAP_" #cap, needed, gives },
		CC_RIGHTS(X)
#undef X
	};
	static const enum loader_probe_state states[] = { [RIGHTS_NO] = LOADER_PROBE_NO,
							  [RIGHTS_YES] = LOADER_PROBE_YES,
							  [RIGHTS_UNKNOWN] = LOADER_PROBE_UNKNOWN };
	for (size_t i = 0; i < ARRAY_SIZE(caps); i++) {
		struct loader_probe p = {
			.group = "rights",
			.state = states[rights_have(caps[i].cap)],
			.needed = caps[i].needed,
			.gives = caps[i].gives,
			.fix = FIX_ROOT,
		};
		snprintf(p.name, sizeof(p.name), "%s", caps[i].name);
		add(l, &p);
	}
}

static enum loader_probe_state kallsyms_state(void)
{
	char line[256];
	unsigned long long addr = 0, seen = 0;
	FILE *f = fopen("/proc/kallsyms", "re");
	if (!f)
		return LOADER_PROBE_NO;
	for (int i = 0; i < 64 && fgets(line, sizeof(line), f); i++)
		if (sscanf(line, "%llx", &addr) == 1)
			seen |= addr;
	fclose(f);
	return seen ? LOADER_PROBE_YES : LOADER_PROBE_NO;
}

/* Lockdown "confidentiality" refuses all reads of kernel memory by BPF. */
static enum loader_probe_state lockdown_state(void)
{
	char line[128] = "";
	FILE *f = fopen("/sys/kernel/security/lockdown", "re");
	if (!f)
		return LOADER_PROBE_YES; /* no lockdown, or securityfs not mounted */
	if (!fgets(line, sizeof(line), f))
		line[0] = 0;
	fclose(f);
	return strstr(line, "[confidentiality]") ? LOADER_PROBE_NO : LOADER_PROBE_YES;
}

static void probe_files(struct list *l)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	const struct loader_probe p[] = {
		{ "kernel", "BTF",
		  access("/sys/kernel/btf/vmlinux", R_OK) ? LOADER_PROBE_NO : LOADER_PROBE_YES,
		  true, "kernel programs find their fields on this kernel",
		  "a kernel with CONFIG_DEBUG_INFO_BTF=y (all big distributions since 2021)" },
		{ "kernel", "lockdown allows it", lockdown_state(), true,
		  "kernel programs may read kernel memory",
		  "boot without lockdown=confidentiality" },
		{ "kernel", "kallsyms", kallsyms_state(), false,
		  "kernel frames, timer wakes and anonymous files have names",
		  "CAP_SYSLOG, or sysctl kernel.kptr_restrict=0" },
		{ "kernel", "children in /proc",
		  access(path, R_OK) ? LOADER_PROBE_NO : LOADER_PROBE_YES, false,
		  "--pid brings the workers a server forked before",
		  "CONFIG_PROC_CHILDREN=y, or name every worker with --pid" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(p); i++)
		add(l, &p[i]);
}

/* What the programs use by BTF: a tracepoint, a function, an iterator or a struct member. */
enum need { NEED_TRACEPOINT, NEED_FUNCTION, NEED_STRUCT, NEED_TASK_MEMBER, NEED_CFS_MEMBER };

static const struct {
	const char *group, *name;
	enum need need;
	bool needed;
	const char *gives, *fix;
} kernel_needs[] = {
	{ "waits", "sched_switch", NEED_TRACEPOINT, true, "every wait of a thread",
	  "Linux 5.11 or later" },
	{ "waits", "sched_waking", NEED_TRACEPOINT, true, "who ended it", "Linux 5.11 or later" },
	{ "waits", "sched_process_fork", NEED_TRACEPOINT, true, "threads and workers born later",
	  "Linux 5.11 or later" },
	{ "waits", "bpf_iter__task", NEED_STRUCT, true, "threads that wait already at attach",
	  "Linux 5.11 or later" },
	{ "waits", "sched_migrate_task", NEED_TRACEPOINT, false, "moved while queued",
	  "Linux 5.5" },
	{ "waits", "hrtimer_expire_entry", NEED_TRACEPOINT, false, "waits that timed out",
	  "Linux 5.5" },
	{ "waits", "tcp_retransmit_skb", NEED_TRACEPOINT, false,
	  "lost packets told from a slow peer", "Linux 5.5" },
	{ "waits", "bpf_task_from_vpid", NEED_FUNCTION, false,
	  "the owner of a mutex checked: \"held by\"", "Linux 6.14 or later" },
	{ "waits", "blocker", NEED_TASK_MEMBER, false, "the kernel lock that is waited for",
	  "Linux 6.15 with CONFIG_DETECT_HUNG_TASK_BLOCKER=y; else mmap_lock only" },
	{ "waits", "throttled_clock_self_time", NEED_CFS_MEMBER, false, "CPU quota throttling",
	  "Linux 6.6 with CONFIG_CFS_BANDWIDTH=y" },
	{ "stacks", "sched_exit_tp", NEED_TRACEPOINT, false, "late tier: the cheapest",
	  "Linux 6.18; else the eager tier is used" },
	{ "stacks", "bpf_copy_from_user_task", NEED_FUNCTION, false,
	  "stacks of threads blocked now", "Linux 5.18" },
	{ "go", "bpf_uprobe_multi_link", NEED_STRUCT, false,
	  "probes on Go programs that are quick to set and to take away",
	  "Linux 6.6; else perf events are used" },
	{ "requests", "sk_data_ready", NEED_TRACEPOINT, false, "when a request arrived",
	  "Linux 6.3 or later; else waits only" },
	{ "requests", "sock_recv_length", NEED_TRACEPOINT, false, "who received it",
	  "Linux 6.3 or later; else waits only" },
	{ "requests", "sock_send_length", NEED_TRACEPOINT, false, "when it was answered",
	  "Linux 6.3 or later; else waits only" },
	{ "requests", "inet_sock_set_state", NEED_TRACEPOINT, false,
	  "connections opened and closed", "Linux 5.5" },
	{ "requests", "bpf_iter__task_file", NEED_STRUCT, false,
	  "connections from before attach, requests not finished", "Linux 5.8" },
};

static bool has_member(const struct btf *b, const char *type, const char *member)
{
	int id = btf__find_by_name_kind(b, type, BTF_KIND_STRUCT);
	const struct btf_type *t = id > 0 ? btf__type_by_id(b, (__u32)id) : NULL;
	const struct btf_member *m = t ? btf_members(t) : NULL;
	for (__u32 i = 0; t && i < btf_vlen(t); i++)
		if (!strcmp(btf__name_by_offset(b, m[i].name_off), member))
			return true;
	return false;
}

static bool has_need(const struct btf *b, enum need need, const char *name)
{
	switch (need) {
	case NEED_TRACEPOINT:
		return load_has_tracepoint(b, name);
	case NEED_FUNCTION:
		return btf__find_by_name_kind(b, name, BTF_KIND_FUNC) > 0;
	case NEED_STRUCT:
		return btf__find_by_name_kind(b, name, BTF_KIND_STRUCT) > 0;
	case NEED_TASK_MEMBER:
		return has_member(b, "task_struct", name);
	case NEED_CFS_MEMBER:
		return has_member(b, "cfs_rq", name);
	}
	return false;
}

static void probe_kernel(struct list *l)
{
	libbpf_set_print(NULL);
	struct btf *b = btf__load_vmlinux_btf();
	for (size_t i = 0; i < ARRAY_SIZE(kernel_needs); i++) {
		struct loader_probe p = {
			.group = kernel_needs[i].group,
			.state = !b ? LOADER_PROBE_UNKNOWN
				 : has_need(b, kernel_needs[i].need, kernel_needs[i].name)
					 ? LOADER_PROBE_YES
					 : LOADER_PROBE_NO,
			.needed = kernel_needs[i].needed,
			.gives = kernel_needs[i].gives,
			.fix = kernel_needs[i].fix,
		};
		snprintf(p.name, sizeof(p.name), "%s", kernel_needs[i].name);
		add(l, &p);
	}
	btf__free(b);
}

uint32_t loader_probe(struct loader_probe *ret, uint32_t max)
{
	struct list l = { .probes = ret, .max = max };
	probe_rights(&l);
	probe_files(&l);
	probe_kernel(&l);
	return l.cnt;
}
