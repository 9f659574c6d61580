/* SPDX-License-Identifier: Apache-2.0 */
/* stacks PID ROUNDS: stops the threads of a process for a moment, again and again, and unwinds what
 * was on their stacks in every way there is here: by our rows of unwind information, by libunwind,
 * by libdwfl and by frame pointers, which is what bpf_get_stackid() does. Prints one line of JSON:
 * of each, how many are complete, how many are as ours, and what one costs. And what a name costs.
 * stacks FILE: the CPU time that a file takes until its first frame is unwound and named. */
#include "../tests/unit/symbol_util.h"
#include "table_cache.h"

#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define REPEAT 20 /* so that the clock counts for nothing */
#define NAME_REPEAT 200
#define THREADS_MAX 64

struct way {
	const char *name;
	uint64_t stacks, full, same, frames, ns, times;
};
enum { OURS, LIBUNWIND, LIBDWFL, FRAME_POINTERS, WAYS };

struct bench {
	pid_t pid;
	struct file_cache *files;
	struct unwinder *rows, *judge;
	struct maps maps;
	Dwfl *dwfl;
	struct cc_rec_snap *snap;
	struct way way[WAYS];
	uint64_t name_ns, name_cnt, names, dwfl_name_ns, dwfl_name_cnt;
};

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t now_ns(void) { return clock_ns(CLOCK_MONOTONIC); }
static uint64_t cpu_ns(void) { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }

static bool word_at(const struct cc_rec_snap *s, uint64_t addr, uint64_t *ret)
{
	uint64_t at = addr - s->sp;

	if (addr < s->sp || s->byte_cnt < 8 || at > s->byte_cnt - 8)
		return false;
	memcpy(ret, (const uint8_t *)s->data + at, 8);
	return true;
}

/* ---- libdwfl --------------------------------------------------------------------------------- */

static pid_t dwfl_next(Dwfl *d, void *arg, void **thread_arg)
{
	struct bench *b = arg;

	(void)d;
	if (*thread_arg)
		return 0;
	*thread_arg = b;
	return (pid_t)b->snap->owner_tid;
}

static bool dwfl_read(Dwfl *d, Dwarf_Addr addr, Dwarf_Word *ret, void *arg)
{
	(void)d;
	return word_at(((struct bench *)arg)->snap, addr, ret);
}

static bool dwfl_regs(Dwfl_Thread *t, void *arg)
{
	const struct bench *b = arg;
	struct unwind_in in;
	Dwarf_Word regs[17];

	unwind_in_from_snap(b->snap, &in);
	for (int i = 0; i < 16; i++)
		regs[i] = in.regs[i];
	regs[16] = in.ip;
	return dwfl_thread_state_registers(t, 0, 17, regs);
}

static int dwfl_frame(Dwfl_Frame *f, void *arg)
{
	struct unwind_out *o = arg;
	Dwarf_Addr pc;

	if (o->cnt == CC_STACK_MAX || !dwfl_frame_pc(f, &pc, NULL))
		return DWARF_CB_ABORT;
	o->ip[o->cnt++] = pc;
	return DWARF_CB_OK;
}

static void dwfl_open(struct bench *b)
{
	static char *none;
	static const Dwfl_Callbacks cb = { .find_elf = dwfl_linux_proc_find_elf,
					   .find_debuginfo = dwfl_standard_find_debuginfo,
					   .debuginfo_path = &none };
	static const Dwfl_Thread_Callbacks threads = { .next_thread = dwfl_next,
						       .memory_read = dwfl_read,
						       .set_initial_registers = dwfl_regs };

	b->dwfl = dwfl_begin(&cb);
	if (!b->dwfl || dwfl_linux_proc_report(b->dwfl, b->pid) ||
	    dwfl_report_end(b->dwfl, NULL, NULL) ||
	    !dwfl_attach_state(b->dwfl, NULL, b->pid, &threads, b)) {
		fprintf(stderr, "libdwfl: %s\n", dwfl_errmsg(-1));
		exit(1);
	}
}

/* ---- each way -------------------------------------------------------------------------------- */

static void by_frame_pointers(const struct bench *b, struct unwind_out *o)
{
	uint64_t bp = b->snap->bp, next, ip;

	o->ip[o->cnt++] = b->snap->ip;
	while (o->cnt < CC_STACK_MAX && word_at(b->snap, bp, &next) &&
	       word_at(b->snap, bp + 8, &ip) && ip) {
		o->ip[o->cnt++] = ip;
		if (next <= bp)
			break;
		bp = next;
	}
}

static void unwind(struct bench *b, int way, const struct unwind_in *in, struct unwind_out *o)
{
	o->cnt = 0;
	o->guessed = false;
	o->end = UNWIND_BAD;
	switch (way) {
	case OURS:
		b->rows->ops->unwind(b->rows, &b->maps, in, o);
		break;
	case LIBUNWIND:
		b->judge->ops->unwind(b->judge, &b->maps, in, o);
		break;
	case LIBDWFL:
		if (!dwfl_getthread_frames(b->dwfl, (pid_t)b->snap->owner_tid, dwfl_frame, o))
			o->end = UNWIND_START;
		break;
	case FRAME_POINTERS:
		by_frame_pointers(b, o);
		break;
	}
}

/* @ours: what the frames are. By frame pointers a stack is complete if it ends where ours does. */
static void tally(struct way *w, int way, const struct unwind_out *ours, const struct unwind_out *o,
		  uint64_t ns, unsigned int times)
{
	bool full = o->end == UNWIND_START && !o->guessed;

	if (way == FRAME_POINTERS)
		full = ours->end == UNWIND_START && o->ip[o->cnt - 1] == ours->ip[ours->cnt - 1];
	w->stacks++;
	w->full += full;
	w->frames += o->cnt;
	w->same += o->cnt == ours->cnt && !memcmp(o->ip, ours->ip, o->cnt * sizeof(o->ip[0]));
	w->ns += ns;
	w->times += times;
}

static void name_frames(struct bench *b, const struct unwind_out *o)
{
	char name[256];

	for (unsigned int i = 0; i < o->cnt; i++) {
		uint64_t at = o->ip[i] - (i > 0), vaddr, off, begin;
		struct mapping *p = maps_find(&b->maps, at);
		struct elf_file *f = p ? maps_file(&b->maps, p, b->files) : NULL;

		if (!f || maps_vaddr(p, f, at, &vaddr))
			continue;
		b->names += !elf_file_name(f, vaddr, false, name, sizeof(name), &off);
		begin = cpu_ns();
		for (int j = 0; j < NAME_REPEAT; j++)
			(void)!elf_file_name(f, vaddr, false, name, sizeof(name), &off);
		b->name_ns += cpu_ns() - begin;
		b->name_cnt += NAME_REPEAT;
		begin = now_ns();
		Dwfl_Module *m = dwfl_addrmodule(b->dwfl, at);
		if (m)
			dwfl_module_addrname(m, at);
		b->dwfl_name_ns += now_ns() - begin;
		b->dwfl_name_cnt++;
	}
}

static void one_stack(struct bench *b, pid_t tid)
{
	struct unwind_out ours, o;
	struct unwind_in in;

	if (snap_take(b->pid, tid, 8192, b->snap))
		return; /* it has just ended */
	snap_release(tid);
	unwind_in_from_snap(b->snap, &in);
	unwind(b, OURS, &in, &ours);
	for (int way = 0; way < WAYS; way++) {
		unsigned int times = way == LIBDWFL ? 1 : REPEAT;
		uint64_t begin;

		unwind(b, way, &in, &o); /* warm */
		begin = now_ns();
		for (unsigned int i = 0; i < times; i++)
			unwind(b, way, &in, &o);
		tally(&b->way[way], way, &ours, &o, now_ns() - begin, times);
	}
	name_frames(b, &ours);
}

static void print(const struct bench *b)
{
	printf("{");
	for (int i = 0; i < WAYS; i++) {
		const struct way *w = &b->way[i];
		double n = w->stacks ? (double)w->stacks : 1;

		printf("\"%s\":{\"stacks\":%llu,\"complete\":%.5f,\"as_ours\":%.5f,\"frames\":%.1f,"
		       "\"ns\":%.0f},",
		       w->name, (unsigned long long)w->stacks, (double)w->full / n,
		       (double)w->same / n, (double)w->frames / n,
		       w->times ? (double)w->ns / (double)w->times : 0);
	}
	printf("\"name_ns\":%.0f,\"dwfl_name_ns\":%.0f,\"named\":%.3f}\n",
	       b->name_cnt ? (double)b->name_ns / (double)b->name_cnt : 0,
	       b->dwfl_name_cnt ? (double)b->dwfl_name_ns / (double)b->dwfl_name_cnt : 0,
	       b->name_cnt ? (double)b->names * NAME_REPEAT / (double)b->name_cnt : 0);
}

/* The CPU time of a file that a process has just mapped, until its first frame is unwound and
 * named; the best of some. */
static uint64_t open_ns(const char *path, struct table_cache *tables, struct elf_file **ret)
{
	uint64_t best = UINT64_MAX, begin, at, off;
	char name[256];

	for (int i = 0; i < REPEAT; i++) {
		elf_file_put(*ret);
		*ret = NULL;
		begin = cpu_ns();
		if (elf_file_open(open(path, O_RDONLY | O_CLOEXEC), tables, ret))
			return 0;
		at = (*ret)->fde_cnt ? (*ret)->fdes[(*ret)->fde_cnt / 2].start : 0;
		(void)!elf_file_cfi_row(*ret, at);
		(void)!elf_file_name(*ret, at, false, name, sizeof(name), &off);
		best = CC_MIN(best, cpu_ns() - begin);
	}
	return best;
}

static int time_file(const char *path)
{
	char dir[] = "/tmp/criticast-tables-XXXXXX", cmd[64];
	struct table_cache *tables = NULL;
	struct elf_file *f = NULL;
	uint64_t made, found;

	if (!mkdtemp(dir) || table_cache_at(open(dir, O_RDONLY | O_DIRECTORY), 1u << 30, &tables))
		return 1;
	made = open_ns(path, NULL, &f);
	found = open_ns(path, tables, &f);
	if (f)
		printf("{\"path\":\"%s\",\"mb\":%.1f,\"fdes\":%zu,\"symbols\":%zu,\"ms\":%.2f,"
		       "\"kept\":%s,\"kept_ms\":%.2f}\n",
		       path, (double)f->bytes / 1e6, f->fde_cnt, f->funcs.cnt, (double)made / 1e6,
		       f->mapped ? "true" : "false", (double)found / 1e6);
	elf_file_put(f);
	table_cache_free(tables);
	snprintf(cmd, sizeof(cmd), "rm -r %s", dir);
	return system(cmd) != 0;
}

int main(int argc, char **argv)
{
	struct bench b = { .way = { { .name = "ours" },
				    { .name = "libunwind" },
				    { .name = "libdwfl" },
				    { .name = "frame pointers" } } };
	pid_t tids[THREADS_MAX];
	bool changed;

	if (argc == 2)
		return time_file(argv[1]);
	if (argc != 3)
		return 2;
	b.pid = atoi(argv[1]);
	b.snap = malloc(SNAP_BUF_BYTES);
	maps_init(&b.maps, (uint32_t)b.pid);
	if (!b.snap || file_cache_new(&b.files) || unwind_rows_new(b.files, &b.rows) ||
	    unwind_libunwind_new(b.files, &b.judge) || maps_refresh(&b.maps, &changed)) {
		fprintf(stderr, "cannot look into process %d\n", b.pid);
		return 1;
	}
	dwfl_open(&b);
	for (int round = 0; round < atoi(argv[2]); round++) {
		size_t cnt = thread_list(b.pid, tids, THREADS_MAX);

		for (size_t i = 0; i < cnt; i++)
			one_stack(&b, tids[i]);
		usleep(1000 + (useconds_t)round % 7 * 300);
	}
	print(&b);
	dwfl_end(b.dwfl);
	maps_done(&b.maps);
	unwinder_free(b.rows);
	unwinder_free(b.judge);
	file_cache_free(b.files);
	free(b.snap);
	return 0;
}
