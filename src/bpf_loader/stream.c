/* SPDX-License-Identifier: Apache-2.0 */
#include "stream.h"
#include "rules.h"
#include "sample.h"

#include "go.h"
#include "stats.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "criticast.skel.h"

#define CPU_USER 0xffff
#define SLACK_NS CC_MS(10) /* a record is committed at most this long after its time */
#define TICK_LAST 1

#if defined(__x86_64__)
#define ELF_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define ELF_MACHINE EM_AARCH64
#endif

static struct cc_rec head(size_t size, uint8_t kind, uint16_t aux)
{
	return (struct cc_rec){
		.size = (__u16)size,
		.kind = kind,
		.cpu = CPU_USER,
		.aux = aux,
		.ts = loader_now(),
	};
}

static int put_counter(uint8_t kind, uint16_t what, uint64_t value, cc_record_fn *fn, void *ctx)
{
	struct cc_rec_counter r = { .h = head(sizeof(r), kind, what), .value = value };
	return fn(ctx, &r.h, sizeof(r));
}

static int put_name(uint16_t what, const char *text, cc_record_fn *fn, void *ctx)
{
	union {
		struct cc_rec_name r;
		char bytes[sizeof(struct cc_rec_name) + 512];
	} u;
	size_t len = strnlen(text, 512), size = sizeof(u.r) + (len + 7) / 8 * 8;
	memset(&u, 0, sizeof(u));
	u.r.h = head(size, CC_REC_NAME, what);
	u.r.len[0] = (__u16)len;
	memcpy(u.r.text, text, len);
	return fn(ctx, &u.r.h, size);
}

int stream_note(const char *text, cc_record_fn *fn, void *ctx)
{
	return put_name(CC_NAME_NOTE, text, fn, ctx);
}

/* The best that any process has. */
static uint64_t go_tier(const struct loader *l)
{
	uint64_t best = 0;
	for (size_t i = 0; l->go && i < l->go->proc_cnt; i++)
		best = CC_MAX(best, (uint64_t)(go_tier_now(l, l->go->procs[i]) - LOADER_GO_OFF));
	return best;
}

int stream_go_tier(struct loader *l, cc_record_fn *fn, void *ctx)
{
	return put_counter(CC_REC_OPTION, CC_OPT_GO_TIER, go_tier(l), fn, ctx);
}

static const char *tier_note(enum loader_stack_tier t)
{
	switch (t) {
	case LOADER_STACK_LATE:
		return "stacks: late tier, taken on resume";
	case LOADER_STACK_WAKING:
		return "stacks: waking tier, user stacks only where the waker is of the same "
		       "process";
	case LOADER_STACK_EAGER:
		return "stacks: eager tier, taken at every block; dearer";
	default:
		return "stacks: none";
	}
}

int stream_options(struct loader *l, cc_record_fn *fn, void *ctx)
{
	const struct {
		uint16_t what;
		uint64_t value;
	} opts[] = {
		{ CC_OPT_MIN_BLOCK, l->o.min_block_ns },
		{ CC_OPT_STACK_MIN, l->o.stack_min_ns },
		{ CC_OPT_SAMPLE, l->o.sample_n },
		{ CC_OPT_STACK_TIER, l->stack_tier == LOADER_STACK_NONE ? 0 : l->stack_tier },
		{ CC_OPT_REQ_TIER, l->req_tier == LOADER_REQ_NONE ? 0 : l->req_tier },
		{ CC_OPT_ARCH, ELF_MACHINE },
		{ CC_OPT_CPUS, (uint64_t)sysconf(_SC_NPROCESSORS_CONF) },
		{ CC_OPT_GO_TIER, go_tier(l) },
	};
	struct utsname u;
	char text[3 * sizeof(u.release)];
	int ret = 0;
	for (size_t i = 0; ret >= 0 && i < ARRAY_SIZE(opts); i++)
		ret = put_counter(CC_REC_OPTION, opts[i].what, opts[i].value, fn, ctx);
	if (ret >= 0 && !uname(&u)) {
		snprintf(text, sizeof(text), "%s %s %s", u.nodename, u.release, u.machine);
		ret = put_name(CC_NAME_HOST, text, fn, ctx);
	}
	if (ret >= 0 && l->kernel_pid) {
		snprintf(text, sizeof(text),
			 "pid %u is a thread of the kernel: it serves no requests; what it waits "
			 "for "
			 "is in Waits and Threads",
			 l->kernel_pid);
		ret = stream_note(text, fn, ctx);
	}
	if (ret >= 0)
		ret = stream_note(tier_note(l->stack_tier), fn, ctx);
	if (ret >= 0) {
		snprintf(text, sizeof(text), "requests: %s%s%s", loader_req_tier_name(l->req_tier),
			 l->req_why[0] ? "; " : "", l->req_why);
		ret = stream_note(text, fn, ctx);
	}
	if (ret >= 0 && l->left_out) {
		snprintf(text, sizeof(text), "this kernel refuses %s: done without it",
			 l->left_out_name);
		ret = stream_note(text, fn, ctx);
	}
	if (ret >= 0 && rules_note(l))
		ret = stream_note(rules_note(l), fn, ctx);
	if (ret >= 0 && l->go_err) {
		snprintf(text, sizeof(text),
			 "go: this kernel refuses the programs for goroutines (%s): threads only",
			 strerror(-l->go_err));
		ret = stream_note(text, fn, ctx);
	}
	if (ret >= 0 && sample_note(l))
		ret = stream_note(sample_note(l), fn, ctx);
	return ret < 0 ? ret : 0;
}

void stream_read_comm(uint32_t tgid, char comm[CC_COMM_LEN])
{
	char path[64], line[CC_COMM_LEN + 1] = "";
	snprintf(path, sizeof(path), "/proc/%u/comm", tgid);
	FILE *f = fopen(path, "re");
	memset(comm, 0, CC_COMM_LEN);
	if (!f)
		return;
	if (fgets(line, sizeof(line), f))
		line[strcspn(line, "\n")] = 0;
	fclose(f);
	memcpy(comm, line, strnlen(line, CC_COMM_LEN - 1));
}

int stream_targets(struct loader *l, cc_record_fn *fn, void *ctx)
{
	int ret = 0;
	for (size_t i = 0; ret >= 0 && i < l->target_cnt; i++) {
		struct loader_target *t = &l->targets[i];
		if (t->told)
			continue;
		struct cc_rec_target r = {
			.h = head(sizeof(r), CC_REC_TARGET, 0),
			.tgid = t->tgid,
			.parent = t->parent,
			.start = t->start,
		};
		r.h.flags = (t->parent ? CC_TG_CAME : 0) |
			    (t->flags & CC_TF_FOLLOWED ? CC_TG_FOLLOWED : 0);
		stream_read_comm(t->tgid, r.comm);
		t->told = true;
		ret = fn(ctx, &r.h, sizeof(r));
	}
	return ret < 0 ? ret : 0;
}

/* Reads value @key of a per-CPU array map with values of @size bytes into @buf, one per CPU. */
static int read_percpu(const struct bpf_map *map, __u32 key, void *buf)
{
	return bpf_map_lookup_elem(bpf_map__fd(map), &key, buf) ? -errno : 0;
}

int stream_read_counters(struct loader *l, uint64_t ret[CC_BPF_CNT_MAX])
{
	int cpus = libbpf_num_possible_cpus();
	if (cpus < 0)
		return cpus;
	uint64_t *v = calloc((size_t)cpus, sizeof(*v));
	int err = v ? 0 : -ENOMEM;
	for (__u32 k = 0; !err && k < CC_BPF_CNT_MAX; k++) {
		err = read_percpu(l->skel->maps.counters, k, v);
		ret[k] = 0;
		for (int c = 0; !err && c < cpus; c++)
			ret[k] += v[c];
	}
	free(v);
	if (!err)
		ret[CC_CNT_RECURSION] = stats_recursion_misses(l);
	return err;
}

/* Those that the resolver tells. */
static bool is_resolvers(uint16_t cnt)
{
	return cnt == CC_CNT_UNWOUND || cnt == CC_CNT_UNWOUND_FULL || cnt == CC_CNT_VERIFIED ||
	       cnt == CC_CNT_VERIFY_WRONG;
}

int stream_counters(struct loader *l, cc_record_fn *fn, void *ctx)
{
	uint64_t v[CC_BPF_CNT_MAX];
	int ret = stream_read_counters(l, v);
	for (uint16_t k = 1; ret >= 0 && k <= CC_CNT_LAST; k++)
		if (!is_resolvers(k))
			ret = put_counter(CC_REC_COUNTER, k, v[k], fn, ctx);
	return ret < 0 ? ret : 0;
}

int stream_losses(struct loader *l, cc_record_fn *fn, void *ctx)
{
	int cpus = libbpf_num_possible_cpus(), ret = 0;
	cc_ns since = l->losses_seen, now = loader_now();
	if (cpus < 0)
		return cpus;
	struct cc_bpf_loss *v = calloc((size_t)cpus, sizeof(*v));
	if (!v)
		return -ENOMEM;
	for (__u32 kind = 0; ret >= 0 && kind < CC_REC_KIND_CNT; kind++) {
		struct cc_bpf_loss sum = { 0 }, *seen = &l->lost[kind];
		ret = read_percpu(l->skel->maps.losses, kind, v);
		for (int c = 0; c < cpus && ret >= 0; c++) {
			sum.cnt += v[c].cnt;
			sum.bytes += v[c].bytes;
			sum.last = CC_MAX(sum.last, v[c].last);
		}
		if (ret < 0 || sum.cnt == seen->cnt)
			continue;
		struct cc_rec_loss r = {
			.h = head(sizeof(r), CC_REC_LOSS, (uint16_t)kind),
			.from = since,
			.to = CC_MAX(sum.last, since),
			.cnt = sum.cnt - seen->cnt,
			.bytes = sum.bytes - seen->bytes,
		};
		*seen = sum;
		ret = fn(ctx, &r.h, sizeof(r));
	}
	l->losses_seen = now;
	free(v);
	return ret < 0 ? ret : 0;
}

static cc_ns clock_ns(clockid_t id)
{
	struct timespec t;
	clock_gettime(id, &t);
	return CC_S(t.tv_sec) + (cc_ns)t.tv_nsec;
}

cc_ns loader_now(void) { return clock_ns(CLOCK_MONOTONIC); }

int stream_tick(struct loader *l, bool last, cc_record_fn *fn, void *ctx)
{
	struct cc_rec_tick r = { .h = head(sizeof(r), CC_REC_TICK, 0) };
	r.realtime_ns = clock_ns(CLOCK_REALTIME);
	r.boottime_ns = clock_ns(CLOCK_BOOTTIME);
	r.interval_ns = l->o.interval_ns;
	r.h.flags = last ? TICK_LAST : 0;
	/* after the last drain nothing is given any more, so nothing can come late */
	r.drained_to = last ? l->full_at : l->full_at > SLACK_NS ? l->full_at - SLACK_NS : 0;
	int ret = fn(ctx, &r.h, sizeof(r));
	return ret < 0 ? ret : 0;
}
