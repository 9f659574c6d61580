/* SPDX-License-Identifier: Apache-2.0 */
/* Tables that are kept on disk: those of the file, of no other, and nothing that was tampered with.
 */
#include "table_cache.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <libdeflate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define HEAD_BYTES 184 /* of an entry, before its symbols */

static char dir[] = "/tmp/criticast-tables-XXXXXX";

static void sh(const char *cmd) { cr_assert_eq(system(cmd), 0, "%s", cmd); }

/* A library with so many functions called @name, whose build-id says it is another. */
static void build(const char *file, const char *name, const char *body)
{
	char cmd[1024];

	snprintf(cmd, sizeof(cmd),
		 "printf '.macro f\\n.globl %s\\\\@\\n.type %s\\\\@,@function\\n%s\\\\@: "
		 ".cfi_startproc\\n%s\\nret\\n.cfi_endproc\\n.size %s\\\\@,.-%s\\\\@\\n.endm\\n"
		 ".rept 6000\\nf\\n.endr\\n' | gcc -x assembler - -shared -nostdlib "
		 "-Wl,--build-id=0x1234567890abcdef -o %s/%s",
		 name, name, name, body, name, name, dir, file);
	sh(cmd);
}

static void setup(void)
{
	char cmd[128];

	cr_assert_not_null(mkdtemp(dir));
	snprintf(cmd, sizeof(cmd), "mkdir -m 700 %s/kept", dir);
	sh(cmd);
	build("a.so", "fa", "nop");
	build("b.so", "fb", "cld");
	usleep(3100000); /* what has just changed is not kept: it may change again at the same time
			  */
}

static void teardown(void)
{
	char cmd[128];

	snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	sh(cmd);
}

static struct table_cache *kept(uint64_t max)
{
	struct table_cache *c;
	char path[64];

	snprintf(path, sizeof(path), "%s/kept", dir);
	cr_assert_eq(table_cache_at(open(path, O_RDONLY | O_DIRECTORY), max, &c), 0);
	cr_assert_not_null(c);
	return c;
}

/* How many entries, their bytes; the name of the last. */
static int entries(uint64_t *ret_bytes, char ret_path[512])
{
	char path[64];
	int cnt = 0;

	snprintf(path, sizeof(path), "%s/kept", dir);
	*ret_bytes = 0;
	DIR *d = opendir(path);
	cr_assert_not_null(d);
	for (const struct dirent *e; (e = readdir(d));) {
		struct stat st;

		if (e->d_name[0] == '.')
			continue;
		snprintf(ret_path, 512, "%s/%s", path, e->d_name);
		cr_assert_eq(stat(ret_path, &st), 0);
		cr_expect_eq(st.st_mode & 0777, 0600);
		*ret_bytes += (uint64_t)st.st_size;
		cnt++;
	}
	closedir(d);
	return cnt;
}

static struct elf_file *open_file(const char *name, struct table_cache *c)
{
	struct elf_file *f;
	char path[64];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	cr_assert_eq(elf_file_open(open(path, O_RDONLY | O_CLOEXEC), c, &f), 0);
	return f;
}

static void expect_same(const struct elf_file *f, const struct elf_file *g)
{
	cr_assert_eq(f->funcs.cnt, g->funcs.cnt);
	cr_assert_eq(f->objects.cnt, g->objects.cnt);
	cr_assert_eq(f->fde_cnt, g->fde_cnt);
	cr_expect_arr_eq(f->funcs.v, g->funcs.v, f->funcs.cnt * sizeof(*f->funcs.v));
	cr_expect_arr_eq(f->fdes, g->fdes, f->fde_cnt * sizeof(*f->fdes));
	cr_expect_eq(f->str_off, g->str_off);
	cr_expect_eq(f->str_len, g->str_len);
	cr_expect_eq(f->eh_addr, g->eh_addr);
	cr_expect_eq(f->eh_off, g->eh_off);
	cr_expect_eq(f->eh_len, g->eh_len);
}

static void expect_name(struct elf_file *f, const char *prefix)
{
	char name[64];
	uint64_t off;

	cr_assert_geq(f->funcs.cnt, 6000);
	for (size_t i = 0; i < f->funcs.cnt; i += 500) {
		cr_assert_eq(
			elf_file_name(f, f->funcs.v[i].addr + 1, false, name, sizeof(name), &off),
			0);
		cr_expect_eq(strncmp(name, prefix, strlen(prefix)), 0, "%s", name);
		cr_expect_not_null(elf_file_cfi_row(f, f->funcs.v[i].addr));
	}
}

Test(table_cache, of_the_file_and_of_no_other_with_its_build_id, .init = setup, .fini = teardown,
     .timeout = 60)
{
	struct table_cache *c = kept(1 << 30);
	char path[512];
	uint64_t bytes;

	for (int round = 0; round < 3; round++) {
		struct elf_file *a = open_file("a.so", c), *b = open_file("b.so", c);
		struct elf_file *plain = open_file("a.so", NULL);

		cr_assert_eq(a->bytes, b->bytes);
		cr_assert_arr_eq(a->build_id, b->build_id, a->build_id_len);
		cr_expect_eq(a->mapped != NULL, round > 0);
		cr_expect_eq(b->mapped != NULL, round > 0);
		expect_same(a, plain);
		expect_name(a, "fa");
		expect_name(b, "fb");
		cr_expect_eq(entries(&bytes, path), 2);
		elf_file_put(a);
		elf_file_put(b);
		elf_file_put(plain);
	}
	/* another file at the same place */
	char cmd[256];
	snprintf(cmd, sizeof(cmd), "cat %s/b.so > %s/a.so", dir, dir);
	sh(cmd);
	struct elf_file *a = open_file("a.so", c);
	cr_expect_null(a->mapped);
	expect_name(a, "fb");
	elf_file_put(a);
	table_cache_free(c);
}

Test(table_cache, is_bounded_and_the_oldest_goes_first, .init = setup, .fini = teardown,
     .timeout = 60)
{
	struct table_cache *c = kept(1 << 30);
	char path[512];
	uint64_t one, bytes;

	elf_file_put(open_file("a.so", c));
	cr_assert_eq(entries(&one, path), 1);
	table_cache_free(c);
	c = kept(one + one / 2);
	cr_assert_eq(utimensat(AT_FDCWD, path, (struct timespec[2]){ { 1000, 0 }, { 1000, 0 } }, 0),
		     0);
	elf_file_put(open_file("b.so", c));
	cr_expect_eq(entries(&bytes, path), 1);
	cr_expect_leq(bytes, one + one / 2);
	struct elf_file *f = open_file("b.so", c);
	cr_expect_not_null(f->mapped);
	elf_file_put(f);
	table_cache_free(c);
	c = kept(one / 2); /* no room for one */
	elf_file_put(open_file("a.so", c));
	cr_expect_eq(entries(&bytes, path), 1);
	table_cache_free(c);
}

/* Writes @bytes where the entry lies, as somebody might; the file is read as if there were none. */
static void expect_refused(struct table_cache *c, const char *path, const uint8_t *bytes,
			   size_t len)
{
	FILE *out = fopen(path, "we");

	cr_assert_not_null(out);
	cr_assert_eq(fwrite(bytes, 1, len, out), len);
	fclose(out);
	struct elf_file *f = open_file("a.so", c);
	cr_expect_null(f->mapped);
	expect_name(f, "fa");
	elf_file_put(f);
}

static void set_crc(uint8_t *bytes, size_t len)
{
	uint32_t crc = libdeflate_crc32(0, bytes + 16, len - 16);

	memcpy(bytes + 12, &crc, sizeof(crc));
}

Test(table_cache, nothing_damaged_is_believed, .init = setup, .fini = teardown, .timeout = 120)
{
	struct table_cache *c = kept(1 << 30);
	static const size_t places[] = { 0,   8,   12,  16,  24,  40,  72,  79,  88,   111,   112,
					 120, 128, 136, 160, 168, 176, 183, 184, 4096, 190000 };
	char path[512];
	uint64_t len, word = UINT64_MAX;
	uint8_t *good, *bad;

	elf_file_put(open_file("a.so", c));
	cr_assert_eq(entries(&len, path), 1);
	good = malloc(len);
	bad = malloc(len + 1);
	FILE *in = fopen(path, "re");
	cr_assert_eq(fread(good, 1, len, in), len);
	fclose(in);
	struct elf_file *a = open_file("a.so", NULL);
	cr_assert_eq(len, HEAD_BYTES + (a->funcs.cnt + a->objects.cnt + a->fde_cnt) * 16);
	elf_file_put(a);
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		cr_assert_lt(places[i], len);
		memcpy(bad, good, len);
		bad[places[i]] ^= 0x41;
		expect_refused(c, path, bad, len);
	}
	memcpy(bad, good, len);
	bad[len] = 0;
	expect_refused(c, path, bad, len + 1);
	expect_refused(c, path, bad, len - 16);
	expect_refused(c, path, bad, HEAD_BYTES);
	expect_refused(c, path, bad, 5);
	expect_refused(c, path, bad, 0);
	/* whoever does that can make a sum too */
	static const struct {
		size_t at, bytes;
	} wrong[] = {
		{ HEAD_BYTES, 8 },      /* not in order */
		{ HEAD_BYTES + 12, 4 }, /* a name beyond all names */
		{ HEAD_BYTES - 24, 8 }, /* more functions than there are bytes */
		{ HEAD_BYTES - 8, 8 },  { HEAD_BYTES - 80, 8 }, /* names beyond the file */
		{ HEAD_BYTES - 56, 8 },                         /* .eh_frame beyond the file */
	};
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		memcpy(bad, good, len);
		memcpy(bad + wrong[i].at, &word, wrong[i].bytes);
		set_crc(bad, len);
		expect_refused(c, path, bad, len);
	}
	memcpy(bad, good, len);
	set_crc(bad, len);
	cr_expect_arr_eq(bad, good, len, "the sum is where it is here");
	free(good);
	free(bad);
	/* a link is not followed, a pipe not waited for */
	char other[600];
	snprintf(other, sizeof(other), "%s.other", path);
	elf_file_put(open_file("a.so", c));
	cr_assert_eq(rename(path, other), 0);
	cr_assert_eq(symlink(other, path), 0);
	struct elf_file *f = open_file("a.so", c);
	cr_expect_null(f->mapped);
	elf_file_put(f);
	unlink(path);
	cr_assert_eq(mkfifo(path, 0600), 0);
	f = open_file("a.so", c);
	cr_expect_null(f->mapped);
	elf_file_put(f);
	table_cache_free(c);
}

/* table_cache_new() in a process with this environment: whether there is one. */
static bool found(const char *cache, const char *home)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		struct table_cache *c;

		clearenv();
		if (cache)
			setenv("XDG_CACHE_HOME", cache, 1);
		setenv("HOME", home, 1);
		_exit(table_cache_new(&c) ? 2 : c != NULL);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) < 2);
	return WEXITSTATUS(status);
}

static bool made(const char *path)
{
	struct stat st;

	return !lstat(path, &st) && S_ISDIR(st.st_mode) && (st.st_mode & 0777) == 0700 &&
	       st.st_uid == geteuid();
}

/* What the password file says is tried last: it must not be there for these. */
static void own_home(char *home, size_t size, const char *name)
{
	snprintf(home, size, "%s/%s", dir, name);
	cr_assert_eq(mkdir(home, 0755), 0);
}

Test(table_cache, lies_in_a_directory_that_is_ours_alone, .timeout = 60)
{
	char home[64], cache[80], ours[100], cmd[256];

	cr_assert_not_null(mkdtemp(dir));
	own_home(home, sizeof(home), "home");
	snprintf(cache, sizeof(cache), "%s/.cache", home);
	snprintf(ours, sizeof(ours), "%s/criticast", cache);
	cr_expect(found(NULL, home));
	cr_expect(made(ours));
	cr_expect(found("relative", home));
	snprintf(cache, sizeof(cache), "%s/xdg", dir);
	snprintf(ours, sizeof(ours), "%s/criticast", cache);
	cr_expect(found(cache, home));
	cr_expect(made(ours));
	/* anybody may write there: another one is taken, and that one is left alone */
	snprintf(cmd, sizeof(cmd), "rm -r %s && chmod 777 %s", ours, cache);
	sh(cmd);
	cr_expect(found(cache, home));
	cr_expect_not(made(ours));
	snprintf(cmd, sizeof(cmd), "chmod 755 %s", cache);
	sh(cmd);
	/* it can be read by others, is a link, is no directory */
	static const char *const wrong[] = { "mkdir",      "chmod 755", "rmdir",
					     "ln -s /tmp", "rm",        "touch" };
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		snprintf(cmd, sizeof(cmd), "%s %s", wrong[i], ours);
		sh(cmd);
		if (i % 2)
			cr_expect_not(found(cache, home), "%s", wrong[i]);
	}
	unlink(ours);
	if (!geteuid()) { /* as sudo -E has it: a user's directories; nothing is made there */
		snprintf(cmd, sizeof(cmd), "rm -rf %s/.cache; chown 12345 %s %s", home, cache,
			 home);
		sh(cmd);
		(void)found(cache, home);
		cr_expect_not(made(ours));
		snprintf(ours, sizeof(ours), "%s/.cache", home);
		cr_expect_not(made(ours));
	}
	teardown();
}

Test(table_cache, not_of_a_file_that_others_made, .init = setup, .fini = teardown, .timeout = 60)
{
	struct table_cache *c = kept(1 << 30);
	char path[512], cmd[256];
	uint64_t bytes;

	if (geteuid())
		cr_skip_test("needs root");
	snprintf(cmd, sizeof(cmd), "chown 12345 %s/a.so; objcopy -R .note.gnu.build-id %s/b.so",
		 dir, dir);
	sh(cmd);
	usleep(3100000);
	elf_file_put(open_file("a.so", c));
	elf_file_put(open_file("b.so", c));
	cr_expect_eq(entries(&bytes, path), 0);
	table_cache_free(c);
}
