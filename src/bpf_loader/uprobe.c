/* SPDX-License-Identifier: Apache-2.0 */
#include "uprobe.h"

#include <errno.h>
#include <link.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>

/* From include/uapi/linux/bpf.h of 6.6. */
struct link_create_multi {
	uint32_t prog_fd, target_fd, attach_type, flags;
	uint64_t path, offsets, ref_ctr_offsets, cookies;
	uint32_t cnt, multi_flags, pid, pad;
};

int uprobe_multi_set(int prog_fd, const char *path, const uint64_t *off, const uint64_t *cookies,
		     uint32_t cnt, uint32_t pid)
{
	struct link_create_multi a = {
		.prog_fd = (uint32_t)prog_fd,
		.attach_type = UPROBE_MULTI,
		.path = (uint64_t)(uintptr_t)path,
		.offsets = (uint64_t)(uintptr_t)off,
		.cookies = (uint64_t)(uintptr_t)cookies,
		.cnt = cnt,
		.pid = pid,
	};
	int fd = (int)syscall(SYS_bpf, BPF_LINK_CREATE, &a, sizeof(a));
	return fd < 0 ? -errno : fd;
}

/* A program that does nothing. */
static int empty_prog(bool multi)
{
	static const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	struct bpf_prog_load_opts opts = { .sz = sizeof(opts) };
	if (multi)
		opts.expected_attach_type = (enum bpf_attach_type)UPROBE_MULTI;
	return bpf_prog_load(BPF_PROG_TYPE_KPROBE, NULL, "GPL", insns, ARRAY_SIZE(insns), &opts);
}

bool uprobe_has_multi(void)
{
	uint64_t off = 0;
	int prog = empty_prog(true);
	if (prog < 0)
		return false;
	int err = uprobe_multi_set(prog, "/", &off, NULL, 1, 0); /* only the file may be wrong */
	close(prog);
	if (err >= 0)
		close(err);
	return err == -EBADF;
}

/* ---- what a hit costs ----------------------------------------------------------------------- */

#define WARM 16
#define CALLS 40
#define ROUNDS 9

/* As Go's functions begin behind their stack check, and as they are filled up before calls. */
void uprobe_on_push(void);
void uprobe_on_nop(void);
__asm__(".text\n.balign 32\n.globl uprobe_on_push, uprobe_on_nop\n"
	".type uprobe_on_push, @function\n.type uprobe_on_nop, @function\n"
#if defined(__x86_64__)
	"uprobe_on_push:\npush %rbp\nmov %rsp, %rbp\npop %rbp\nret\n"
	".balign 32\nuprobe_on_nop:\n.byte 0x0f, 0x1f, 0x44, 0, 0\nret\n"
#else
	"uprobe_on_push:\nnop\nret\n"
	".balign 32\nuprobe_on_nop:\nnop\nret\n"
#endif
	".size uprobe_on_push, 4\n.size uprobe_on_nop, 4\n");

struct place {
	uint64_t addr, off;
};

/* Where in our own file what lies at p->addr is. The program itself comes first. */
static int find_place(struct dl_phdr_info *in, size_t size, void *ctx)
{
	struct place *p = ctx;
	(void)size;
	for (size_t i = 0; i < in->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &in->dlpi_phdr[i];
		uint64_t at = p->addr - in->dlpi_addr - h->p_vaddr;
		if (h->p_type == PT_LOAD && at < h->p_filesz)
			p->off = h->p_offset + at;
	}
	return 1;
}

/* For kernels without uprobe_multi. */
static int perf_set(int prog_fd, const char *path, uint64_t off)
{
	struct perf_event_attr a = { .size = sizeof(a),
				     .config1 = (uint64_t)(uintptr_t)path,
				     .config2 = off };
	FILE *f = fopen("/sys/bus/event_source/devices/uprobe/type", "re");
	int is = f ? fscanf(f, "%u", &a.type) : 0;
	if (f)
		fclose(f);
	if (is != 1)
		return -ENOENT;
	int fd = (int)syscall(SYS_perf_event_open, &a, getpid(), -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, prog_fd) || ioctl(fd, PERF_EVENT_IOC_ENABLE, 0)) {
		int err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

static cc_ns calls_ns(void (*fn)(void), int cnt)
{
	struct timespec a, b;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
	for (int i = 0; i < cnt; i++)
		fn();
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
	return CC_S((cc_ns)(b.tv_sec - a.tv_sec)) + (cc_ns)b.tv_nsec - (cc_ns)a.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
	cc_ns x = *(const cc_ns *)a, y = *(const cc_ns *)b;
	return (x > y) - (x < y);
}

/* Without the probe a call is a nanosecond or two. */
static int measure(int prog_fd, bool multi, void (*fn)(void), cc_ns *ret)
{
	static const char path[] = "/proc/self/exe";
	struct place p = { .addr = (uint64_t)(uintptr_t)fn };
	cc_ns ns[ROUNDS];
	dl_iterate_phdr(find_place, &p);
	if (!p.off)
		return -ENOENT;
	int fd = multi ? uprobe_multi_set(prog_fd, path, &p.off, NULL, 1, (uint32_t)getpid())
		       : perf_set(prog_fd, path, p.off);
	if (fd < 0)
		return fd;
	calls_ns(fn, WARM); /* the first makes it what it will be */
	for (int i = 0; i < ROUNDS; i++)
		ns[i] = calls_ns(fn, CALLS);
	close(fd);
	qsort(ns, ROUNDS, sizeof(*ns), by_size);
	*ret = ns[ROUNDS / 2] / CALLS;
	return 0;
}

int uprobe_measure(struct uprobe_price *ret)
{
	struct uprobe_price p = { 0 };
	bool multi = uprobe_has_multi();
	int prog = empty_prog(multi);
	if (prog < 0)
		return -errno;
	int err = measure(prog, multi, uprobe_on_push, &p.trap);
	if (!err)
		err = measure(prog, multi, uprobe_on_nop, &p.nop);
	close(prog);
	if (!err)
		*ret = p;
	return err;
}
