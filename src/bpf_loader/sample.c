/* SPDX-License-Identifier: Apache-2.0 */
#include "sample.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "criticast.skel.h"

struct sample_side {
	size_t cnt; /* clocks that run */
	size_t link_cnt;
	struct bpf_link *links[];
};

void sample_prepare(struct loader *l)
{
	if (!l->o.sample_hz)
		bpf_program__set_autoload(l->skel->progs.on_cpu_sample, false);
}

static struct bpf_link *start_clock(struct loader *l, int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.freq = 1,
		.sample_freq = l->o.sample_hz,
		.exclude_idle = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return NULL;
	struct bpf_link *link = bpf_program__attach_perf_event(l->skel->progs.on_cpu_sample, fd);
	if (!link)
		close(fd); /* else the link owns it */
	return link;
}

int sample_attach(struct loader *l)
{
	if (!l->o.sample_hz)
		return 0;
	size_t cpus = (size_t)libbpf_num_possible_cpus();
	l->samples = calloc(1, sizeof(*l->samples) + cpus * sizeof(l->samples->links[0]));
	if (!l->samples)
		return -ENOMEM;
	l->samples->link_cnt = cpus;
	for (size_t i = 0; i < cpus; i++) { /* one that is offline has none */
		l->samples->links[i] = start_clock(l, (int)i);
		l->samples->cnt += l->samples->links[i] != NULL;
	}
	return 0;
}

const char *sample_note(const struct loader *l)
{
	return l->samples && !l->samples->cnt ? "no samples of what runs: perf_event_open() is "
						"refused; see kernel.perf_event_paranoid"
					      : NULL;
}

void sample_done(struct loader *l)
{
	for (size_t i = 0; l->samples && i < l->samples->link_cnt; i++)
		bpf_link__destroy(l->samples->links[i]);
	free(l->samples);
	l->samples = NULL;
}
