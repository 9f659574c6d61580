/* SPDX-License-Identifier: Apache-2.0 */
#include "stats.h"

#include "rings.h"
#include "stream.h"

#include <errno.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "criticast.skel.h"

static int prog_info(const struct bpf_program *p, struct bpf_prog_info *ret)
{
	__u32 len = sizeof(*ret);
	int fd = bpf_program__fd(p);
	memset(ret, 0, sizeof(*ret));
	if (fd < 0)
		return -ENOENT;
	return bpf_obj_get_info_by_fd(fd, ret, &len) ? -errno : 0;
}

uint64_t stats_recursion_misses(struct loader *l)
{
	struct bpf_prog_info info;
	struct bpf_program *p;
	uint64_t sum = 0;
	for (p = NULL; (p = bpf_object__next_program(l->skel->obj, p));)
		if (!prog_info(p, &info))
			sum += info.recursion_misses;
	return sum;
}

void stats_uprobes(struct loader *l, uint64_t *ret_runs, cc_ns *ret_ns)
{
	struct bpf_prog_info info;
	struct bpf_program *p;
	*ret_runs = *ret_ns = 0;
	for (p = NULL; (p = bpf_object__next_program(l->skel->obj, p));) {
		if (strcmp(bpf_program__section_name(p), "uprobe") || prog_info(p, &info))
			continue;
		*ret_runs += info.run_cnt;
		*ret_ns += info.run_time_ns;
	}
}

int loader_stats(struct cc_source *s, struct loader_stats *ret)
{
	struct loader *l = (struct loader *)s;
	struct bpf_program *p;
	struct loader_stats v = {
		.stack_tier = l->stack_tier,
		.req_tier = l->req_tier,
		.req_why = l->req_why,
		.left_out = l->left_out_name,
		.ring_fill_max = l->fill_max,
		.records = l->records,
	};
	_Static_assert(sizeof(v.counters) == CC_BPF_CNT_MAX * sizeof(v.counters[0]), "one each");
	int err = stream_read_counters(l, v.counters);
	if (err)
		return err;
	v.ring_fill = rings_fill(l->rings, RING_EVENTS, &v.ring_bytes);
	v.control_fill = rings_fill(l->rings, RING_CONTROL, &v.control_bytes);
	for (size_t i = 0; i < l->target_cnt; i++)
		v.target_cnt += !l->targets[i].gone;
	for (p = NULL; (p = bpf_object__next_program(l->skel->obj, p));)
		v.prog_cnt += bpf_program__fd(p) >= 0;
	*ret = v;
	return 0;
}

void stats_health(struct cc_source *s, struct cc_source_health *ret)
{
	struct loader *l = (struct loader *)s;
	struct bpf_prog_info info;
	struct bpf_program *p;
	uint64_t bytes = 0, fill = rings_fill(l->rings, RING_EVENTS, &bytes);
	*ret = (struct cc_source_health){ 0 };
	ret->ring_fill = bytes ? (double)CC_MAX(fill, l->fill_recent) / (double)bytes : 0;
	l->fill_recent = 0;
	for (p = NULL; ret->probe_cnt < ARRAY_SIZE(ret->probe) &&
		       (p = bpf_object__next_program(l->skel->obj, p));) {
		int err = prog_info(p, &info);
		ret->probe[ret->probe_cnt].name = bpf_program__name(p);
		ret->probe[ret->probe_cnt].place = bpf_program__section_name(p);
		ret->probe[ret->probe_cnt].attached = !err;
		ret->probe[ret->probe_cnt++].skipped = info.recursion_misses;
	}
}

int loader_prog_stats(struct cc_source *s, struct loader_prog_stats *ret, uint32_t max)
{
	struct loader *l = (struct loader *)s;
	struct bpf_prog_info info;
	struct bpf_program *p;
	uint32_t cnt = 0;
	for (p = NULL; cnt < max && (p = bpf_object__next_program(l->skel->obj, p));) {
		int err = prog_info(p, &info);
		if (err && err != -ENOENT)
			return err;
		ret[cnt++] = (struct loader_prog_stats){
			.name = bpf_program__name(p),
			.section = bpf_program__section_name(p),
			.attached = !err,
			.run_cnt = info.run_cnt,
			.run_time_ns = info.run_time_ns,
			.recursion_misses = info.recursion_misses,
			.insn_cnt = (uint32_t)(info.xlated_prog_len / 8),
		};
	}
	return (int)cnt;
}
