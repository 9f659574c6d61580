/* SPDX-License-Identifier: Apache-2.0 */
/* Names beyond the symbol table: C++ and Rust, code of a JIT, debug information of a file's own and
 * in a separate file. */
#include "demangle.h"
#include "perf_map.h"
#include "places.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CR_NAME(raw, want)                              \
	do {                                            \
		char buf_[256];                         \
		size_t len_ = demangle(raw, buf_, 256); \
		cr_expect_str_eq(buf_, want);           \
		cr_expect_eq(len_, strlen(buf_));       \
	} while (0)

Test(symbol_places, readable_names)
{
	char small[8], big[MANGLED_MAX];

	CR_NAME("_ZN4shop4Cart3addEi", "shop::Cart::add");
	CR_NAME("_ZNSt6vectorIiSaIiEE9push_backERKi",
		"std::vector<int, std::allocator<int> >::push_back");
	CR_NAME("_ZN4CartISsSsE3addESs", "Cart<std::string, std::string>::add");
	CR_NAME("_ZN4CartINSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEiE3addEv",
		"Cart<std::string, int>::add");
	CR_NAME("_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write");
	CR_NAME("_RNvC4shop3add", "shop::add");
	CR_NAME("cart_add", "cart_add");
	CR_NAME("_ZN", "_ZN"); /* no such name: as it is */
	CR_NAME("", "");
	cr_expect_eq(demangle("_ZN4shop4Cart3addEi", small, sizeof(small)), 7);
	cr_expect_str_eq(small, "shop::C");
	/* one that would nest without end */
	memset(big, 'P', sizeof(big));
	memcpy(big, "_Z1fI", 5);
	big[sizeof(big) - 1] = '\0';
	char out[256];
	cr_expect_leq(demangle(big, out, sizeof(out)), 255);
}

static struct perf_map *map_of(const char *text)
{
	struct perf_map *m;

	cr_assert_eq(perf_map_new(1, &m), 0);
	cr_assert_eq(perf_map_parse(m, text, strlen(text)), 0);
	return m;
}

#define CR_JIT(m, addr, want, want_off)                                            \
	do {                                                                       \
		const char *name_ = NULL;                                          \
		uint64_t off_ = 0;                                                 \
		cr_assert_eq(perf_map_find(m, addr, 0, &name_, &off_), 0, "%#llx", \
			     (unsigned long long)(addr));                          \
		cr_expect_str_eq(name_, want);                                     \
		cr_expect_eq(off_, want_off);                                      \
	} while (0)

static void cr_no_jit(struct perf_map *m, uint64_t addr)
{
	const char *name;
	uint64_t off;

	cr_expect_eq(perf_map_find(m, addr, 0, &name, &off), -ENOENT);
}

Test(symbol_places, code_of_a_jit)
{
	struct perf_map *m =
		map_of("7f00 100 LazyCompile:*serve /srv/a b.js:3\n"
		       "0x8000 0x80 two words\n"
		       "8040 10 inner\n"
		       "7f00 80 JS:serve again\n" /* the code was moved and written anew */
		       "9000 0 empty\n"
		       "ffffffffffffff00 1000 over the end\n"
		       "12345678123456789 10 long\n"
		       "a000 10\n"
		       "# comment\n"
		       "b000 10 last, no line end");

	CR_JIT(m, 0x7f10ull, "JS:serve again", 0x10);
	CR_JIT(m, 0x7f90ull, "LazyCompile:*serve /srv/a b.js:3", 0x90);
	CR_JIT(m, 0x8041ull, "inner", 1);
	CR_JIT(m, 0x8051ull, "two words", 0x51);
	CR_JIT(m, 0xb00full, "last, no line end", 0xf);
	cr_no_jit(m, 0x9000);
	cr_no_jit(m, 0x8080);
	cr_no_jit(m, 0xa000);
	cr_no_jit(m, UINT64_MAX);
	cr_expect_gt(perf_map_mem(m), 0);
	perf_map_free(m);
}

/* Written by a process that grows it; one of another user is not believed. */
Test(symbol_places, jit_file)
{
	char path[64];
	const char *name;
	uint64_t off;
	struct perf_map *m;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	unlink(path);
	FILE *f = fopen(path, "w");
	cr_assert_not_null(f);
	fputs("1000 10 first\n2000 10 half a li", f);
	fflush(f);
	cr_assert_eq(perf_map_new((uint32_t)getpid(), &m), 0);
	cr_expect_eq(perf_map_find(m, 0x1004, CC_S(1), &name, &off), 0);
	cr_expect_eq(perf_map_find(m, 0x2004, CC_S(3), &name, &off), -ENOENT);
	fputs("ne\n", f);
	fflush(f);
	cr_expect_eq(perf_map_find(m, 0x2004, CC_S(3), &name, &off), -ENOENT, "too soon");
	cr_assert_eq(perf_map_find(m, 0x2004, CC_S(5), &name, &off), 0);
	cr_expect_str_eq(name, "half a line");
	fclose(f);
	perf_map_free(m);
	if (!getuid()) {
		cr_assert_eq(chown(path, 12345, 12345), 0);
		cr_assert_eq(perf_map_new((uint32_t)getpid(), &m), 0);
		cr_expect_eq(perf_map_find(m, 0x1004, CC_S(1), &name, &off), -ENOENT);
		perf_map_free(m);
	}
	unlink(path);
}

/* ---- debug information ---- */

static const char program[] = "static inline __attribute__((always_inline)) int inner(int *p)\n"
			      "{\n"
			      "	*p += 1; return *(volatile int *)p;\n"
			      "}\n"
			      "__attribute__((noinline)) int outer(int *p)\n"
			      "{\n"
			      "	return inner(p) * 3;\n"
			      "}\n"
			      "int main(int c, char **v) { (void)v; return outer(&c); }\n";

static void run(const char *cmd, ...)
{
	char line[1024];
	va_list ap;

	va_start(ap, cmd);
	vsnprintf(line, sizeof(line), cmd, ap);
	va_end(ap);
	cr_assert_eq(system(line), 0, "%s", line);
}

static char *make_program(void)
{
	static char dir[] = "/tmp/criticast-places-XXXXXX";
	char path[128];

	cr_assert_not_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/prog.c", dir);
	FILE *f = fopen(path, "w");
	cr_assert(f && fputs(program, f) >= 0 && !fclose(f));
	run("cd %s && gcc -g -O1 -Wl,--build-id -o prog prog.c", dir);
	return dir;
}

static struct elf_file *open_elf(const char *dir, const char *name)
{
	char path[128];
	struct elf_file *f = NULL;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	cr_assert_eq(elf_file_new(open(path, O_RDONLY | O_CLOEXEC), &f), 0);
	return f;
}

static uint64_t address_of(const struct elf_file *f, const char *want)
{
	char name[64];
	uint64_t off;

	for (size_t i = 0; i < f->funcs.cnt; i++) {
		if (!elf_file_name((struct elf_file *)f, f->funcs.v[i].addr, false, name,
				   sizeof(name), &off) &&
		    !strcmp(name, want))
			return f->funcs.v[i].addr;
	}
	cr_assert_fail("no %s", want);
	return 0;
}

/* Asks for each byte of outer(); returns in @best the answer with the most lines. */
static int ask(struct places *p, const struct elf_file *f, uint64_t addr, bool named,
	       struct place *best)
{
	struct place a;
	int cnt = 0;

	memset(best, 0, sizeof(*best));
	for (unsigned int i = 0; i < 8; i++)
		places_ask(p, f, 7, 1, 0x1000 + i, addr + i, 0, named);
	places_wait(p, 20000);
	for (; places_take(p, &a); cnt++) {
		cr_expect_eq(a.tgid, 7);
		if (strlen(a.text) > strlen(best->text))
			*best = a;
	}
	return cnt;
}

Test(symbol_places, debug_information, .timeout = 60)
{
	char *dir = make_program();
	struct elf_file *f = open_elf(dir, "prog");
	uint64_t addr = address_of(f, "outer");
	struct places_health h;
	struct places *p;
	struct place a;

	cr_assert_eq(places_new(&p), 0);
	cr_expect_eq(ask(p, f, addr, true, &a), 8);
	cr_expect_str_eq(a.text, "inner\n", "the function itself is known");
	cr_expect_eq(strncmp(a.file, "prog.c:3\nprog.c:7", 17), 0, "%s", a.file);
	elf_file_put(f);

	/* stripped, debug information beside it by a link */
	run("cd %s && objcopy --only-keep-debug prog prog.debug && strip -o bare prog && "
	    "objcopy --add-gnu-debuglink=prog.debug bare linked",
	    dir);
	f = open_elf(dir, "linked");
	cr_expect_eq(ask(p, f, addr, false, &a), 8);
	cr_expect_eq(strncmp(a.text, "inner\nouter+0x", 14), 0, "%s", a.text);
	elf_file_put(f);

	/* none: nothing is made up */
	f = open_elf(dir, "bare");
	cr_expect_eq(ask(p, f, addr, false, &a), 0, "%s", a.text);
	elf_file_put(f);

	places_health(p, &h);
	cr_expect_eq(h.asked, 24);
	cr_expect_eq(h.answered, 16);
	cr_expect_eq(h.dropped, 0);
	places_free(p);
	run("rm -r %s", dir);
}

/* A function of C++ that has no name of its own is told by what it is in. */
Test(symbol_places, inlined_members, .timeout = 60)
{
	static char dir[] = "/tmp/criticast-places-XXXXXX";
	struct elf_file *f;
	struct places *p;
	struct place a;

	cr_assert_not_null(mkdtemp(dir));
	run("cd %s && printf 'volatile int x;\\nextern \"C\" __attribute__((noinline)) void "
	    "outer(int c)"
	    "{ auto f = [&](int n) { x = x * n + c; }; f(2); f(3); }\\nint main(int c, char **)"
	    "{ outer(c); }\\n' > prog.cc && g++ -g -O2 -o prog prog.cc",
	    dir);
	f = open_elf(dir, "prog");
	cr_assert_eq(places_new(&p), 0);
	cr_expect_eq(ask(p, f, address_of(f, "outer"), true, &a), 8);
	cr_expect_not_null(strstr(a.text, "::operator()\n"), "%s", a.text);
	elf_file_put(f);
	places_free(p);
	run("rm -r %s", dir);
}

/* Too many questions at once, and an end while they wait. */
Test(symbol_places, full_queue, .timeout = 60)
{
	struct elf_file *f = NULL;
	struct places_health h;
	struct places *p;

	cr_assert_eq(elf_file_new(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), &f), 0);
	cr_assert_eq(places_new(&p), 0);
	for (unsigned int i = 0; i < 6000; i++)
		places_ask(p, f, 7, 1, i, f->segs[0].vaddr + i, 0, true);
	places_health(p, &h);
	cr_expect_eq(h.asked, 6000);
	cr_expect_gt(h.dropped, 0);
	places_free(p);
	elf_file_put(f);
}
