/* SPDX-License-Identifier: Apache-2.0 */
/* Unwind information in other places than .eh_frame: .debug_frame, static programs without its
 * header, files without section headers; and stacks that few functions make. */
#include "maps.h"
#include "symbol_util.h"

#include <criterion/criterion.h>
#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const char source[] =
	"#include <unistd.h>\n"
	"#define N __attribute__((noinline, noclone))\n"
	"volatile int x;\n"
	"N void inner(char *p) { p[0] = 1; while (!x) pause(); }\n"
	"N void outer(int n) { char room[200]; inner(room + n); x = room[1]; }\n"
	"int main(int c, char **v) { (void)v; outer(c); return x; }\n";

/* glibc's vfork() keeps its return address in a register while the child has the stack. */
static const char vforks[] =
	"#include <unistd.h>\n#include <signal.h>\n"
	"#define N __attribute__((noinline, noclone))\n"
	"volatile int x;\n"
	"N void inner(char *p) { p[0] = 1; for (;;) if (!vfork()) { usleep(300000); _exit(0); } }\n"
	"N void outer(int n) { char room[200]; inner(room + n); x = room[1]; }\n"
	"int main(int c, char **v) { (void)v; signal(SIGCHLD, SIG_IGN); outer(c); return x; }\n";

/* In a handler; musl tells nothing of where that returns to. */
static const char handled[] =
	"#include <unistd.h>\n#include <signal.h>\n"
	"#define N __attribute__((noinline, noclone))\n"
	"volatile int x;\n"
	"N void inner(int sig) { (void)sig; while (!x) pause(); x = 3; }\n"
	"N void outer(int n) { __asm__ volatile(\"ud2\"); x = n; }\n"
	"int main(int c, char **v) { (void)v; signal(SIGILL, inner); outer(c); return x; }\n";

/* A stack that makecontext() made ends where nobody has called. */
static const char coroutine[] =
	"#include <unistd.h>\n#include <ucontext.h>\n"
	"#define N __attribute__((noinline, noclone))\n"
	"volatile int x;\n"
	"N void inner(char *p) { p[0] = 1; for (;;) pause(); }\n"
	"N void outer(int n) { char room[200]; inner(room + n); x = room[1]; }\n"
	"N void begin(void) { outer(3); x = 2; }\n"
	"static char stack[65536];\n"
	"int main(void) { static ucontext_t a, b; getcontext(&b); b.uc_stack.ss_sp = stack;\n"
	"b.uc_stack.ss_size = sizeof(stack); makecontext(&b, begin, 0); swapcontext(&a, &b); "
	"return x; }\n";

struct frames {
	struct unwind_out out, judged;
	char names[5][64]; /* of the frames from inner() on, "?": none */
};

static void build_by(const char *cc, const char *text, const char *path, const char *flags)
{
	char cmd[512];
	FILE *f;

	snprintf(cmd, sizeof(cmd), "%s -O2 -fomit-frame-pointer %s -o %s -x c - 2>&1", cc, flags,
		 path);
	f = popen(cmd, "w");
	cr_assert_not_null(f);
	fputs(text, f);
	cr_assert_eq(pclose(f), 0, "%s", cmd);
}

static void build_of(const char *text, const char *path, const char *flags)
{
	build_by("gcc", text, path, flags);
}

static void build(const char *path, const char *flags) { build_of(source, path, flags); }

static void forget_sections(const char *path)
{
	int fd = open(path, O_RDWR);
	Elf64_Ehdr eh;

	cr_assert_eq(pread(fd, &eh, sizeof(eh), 0), sizeof(eh));
	eh.e_shoff = eh.e_shnum = eh.e_shstrndx = 0;
	cr_assert_eq(pwrite(fd, &eh, sizeof(eh), 0), sizeof(eh));
	close(fd);
}

static void name_of(struct maps *m, struct file_cache *c, uint64_t at, char *name, size_t size)
{
	struct mapping *p = maps_find(m, at);
	struct elf_file *f = p ? maps_file(m, p, c) : NULL;
	uint64_t vaddr, off;

	if (!f || maps_vaddr(p, f, at, &vaddr) || elf_file_name(f, vaddr, false, name, size, &off))
		snprintf(name, size, "?");
}

/* Runs the program until it sleeps, and unwinds it. */
static void look(const char *path, struct frames *ret)
{
	struct cc_rec_snap *s = calloc(1, SNAP_BUF_BYTES);
	struct unwinder *rows, *judge;
	struct file_cache *files;
	struct unwind_in in;
	struct maps m;
	bool changed;
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl(path, path, NULL);
		_exit(1);
	}
	for (int i = 0; i < 500; i++) { /* it execs, then it sleeps */
		char exe[64], real[256];
		ssize_t n;

		snprintf(exe, sizeof(exe), "/proc/%d/exe", pid);
		n = readlink(exe, real, sizeof(real) - 1);
		if (n > 0 && (real[n] = '\0', !strcmp(real, path)))
			break;
		usleep(10000);
	}
	cr_assert_eq(wait_sleeping(pid, pid), 0);
	cr_assert_eq(snap_take(pid, pid, CC_SNAP_MAX, s), 0);
	cr_assert_eq(file_cache_new(&files), 0);
	cr_assert_eq(unwind_rows_new(files, &rows), 0);
	cr_assert_eq(unwind_libunwind_new(files, &judge), 0);
	maps_init(&m, (uint32_t)pid);
	cr_assert_eq(maps_refresh(&m, &changed), 0);
	unwind_in_from_snap(s, &in);
	in.learn = true;
	rows->ops->unwind(rows, &m, &in, &ret->out);
	expect_rules(s, &ret->out);
	in.learn = false;
	judge->ops->unwind(judge, &m, &in, &ret->judged);
	for (unsigned int i = 0; i < ARRAY_SIZE(ret->names); i++) {
		snprintf(ret->names[i], sizeof(ret->names[i]), "?");
		if (i + 1 < ret->out.cnt)
			name_of(&m, files,
				ret->out.ip[i + 1] -
					!(i && frame_interrupts(&m, files, ret->out.ip[i])),
				ret->names[i], sizeof(ret->names[i]));
	}
	maps_done(&m);
	unwinder_free(rows);
	unwinder_free(judge);
	file_cache_free(files);
	snap_release(pid);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	free(s);
}

static void expect_chain(const struct frames *f)
{
	static const char *const want[] = { "inner", "outer", "main" };

	cr_expect_eq(f->out.end, UNWIND_START);
	cr_expect(!f->out.guessed);
	for (size_t i = 0; i < ARRAY_SIZE(want); i++)
		cr_expect_str_eq(f->names[i], want[i]);
}

/* The same, but nobody is sure. */
static void expect_guessed(const struct frames *f)
{
	static const char *const want[] = { "inner", "outer", "main" };

	cr_expect(f->out.guessed);
	for (size_t i = 0; i < ARRAY_SIZE(want); i++)
		cr_expect_str_eq(f->names[i], want[i]);
}

/* The same frames, though nothing has a name. */
static void expect_same(const struct frames *a, const struct frames *b)
{
	cr_expect_eq(a->out.end, UNWIND_START);
	cr_assert_eq(a->out.cnt, b->out.cnt);
	for (unsigned int i = 0; i < a->out.cnt; i++)
		cr_expect_eq(a->out.ip[i], b->out.ip[i], "frame %u", i);
}

static void expect_judged(const struct frames *f)
{
	cr_assert_eq(f->out.cnt, f->judged.cnt);
	for (unsigned int i = 0; i < f->out.cnt; i++)
		cr_expect_eq(f->out.ip[i], f->judged.ip[i], "frame %u", i);
}

static void temp_path(char *path, size_t size)
{
	snprintf(path, size, "/tmp/criticast-frames-%d", getpid());
}

Test(symbol_frames, debug_frame, .timeout = 60)
{
	static const char flags[] = "-g -fno-asynchronous-unwind-tables -fno-unwind-tables";
	struct frames f;
	char path[64];

	temp_path(path, sizeof(path));
	build(path, flags);
	look(path, &f);
	expect_chain(&f);
	build(path, "-g0 -fno-asynchronous-unwind-tables -fno-unwind-tables");
	look(path, &f);
	expect_guessed(&f);
	unlink(path);
}

/* What a libc without unwind information is linked into: musl, where it is installed. */
Test(symbol_frames, nothing_but_code, .timeout = 60)
{
	static const char *const flags[] = { "-O1 -g0", "-Os -g0 -fno-omit-frame-pointer",
					     "-O2 -fcf-protection=none -fstack-protector-all" };
	struct frames f;
	char path[64];

	temp_path(path, sizeof(path));
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		char all[256];

		snprintf(all, sizeof(all), "-fno-asynchronous-unwind-tables -fno-unwind-tables %s",
			 flags[i]);
		build(path, all);
		look(path, &f);
		expect_guessed(&f);
	}
	if (!system("musl-gcc --version >/dev/null 2>&1")) {
		build_by("musl-gcc", source, path, "-static");
		look(path, &f);
		for (size_t i = 0; i < 3; i++)
			memmove(f.names[i], f.names[i + 1], sizeof(f.names[i])); /* pause() */
		expect_guessed(&f);
	}
	unlink(path);
}

Test(symbol_frames, static_without_headers, .timeout = 60)
{
	static const char *const flags[] = { "-static -no-pie",
					     "-static -no-pie -Wl,--no-eh-frame-hdr" };
	struct frames whole, bare;
	char path[64];

	temp_path(path, sizeof(path));
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		build(path, flags[i]);
		look(path, &whole);
		expect_chain(&whole);
		expect_judged(&whole);
		forget_sections(path);
		look(path, &bare);
		expect_same(&bare, &whole);
		expect_judged(&bare);
	}
	unlink(path);
}

Test(symbol_frames, dynamic_without_sections, .timeout = 60)
{
	struct frames f;
	char path[64];

	temp_path(path, sizeof(path));
	build(path, "-pie");
	forget_sections(path);
	look(path, &f);
	cr_expect_eq(f.out.end, UNWIND_START);
	expect_judged(&f);
	unlink(path);
}

Test(symbol_frames, vfork, .timeout = 60)
{
	static const char *const flags[] = { "", "-static" };
	struct frames f;
	char path[64];

	temp_path(path, sizeof(path));
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		build_of(vforks, path, flags[i]);
		look(path, &f);
		expect_chain(&f);
	}
	unlink(path);
}

Test(symbol_frames, coroutine, .timeout = 60)
{
	static const char *const want[] = { "inner", "outer", "begin" };
	struct frames f;
	char path[64];

	temp_path(path, sizeof(path));
	build_of(coroutine, path, "");
	look(path, &f);
	cr_expect_eq(f.out.end, UNWIND_START);
	cr_expect(!f.out.guessed);
	for (size_t i = 0; i < ARRAY_SIZE(want); i++)
		cr_expect_str_eq(f.names[i], want[i]);
	expect_judged(&f);
	unlink(path);
}

Test(symbol_frames, handler, .timeout = 60)
{
	static const char *const ccs[] = { "gcc", "musl-gcc" };
	char path[64];

	temp_path(path, sizeof(path));
	for (size_t i = 0; i < ARRAY_SIZE(ccs); i++) {
		struct frames f;
		char cmd[64];

		snprintf(cmd, sizeof(cmd), "%s --version >/dev/null 2>&1", ccs[i]);
		if (system(cmd))
			continue;
		build_by(ccs[i], handled, path, "-static");
		look(path, &f);
		for (size_t j = 0; i && j < 3; j++)
			memmove(f.names[j], f.names[j + 1], sizeof(f.names[j])); /* pause() */
		cr_expect_str_eq(f.names[0], "inner");
		cr_expect_str_eq(f.names[2], "outer");
		cr_expect_eq(f.out.guessed, i == 1);
	}
	unlink(path);
}
