/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/PID/maps, kallsyms, and the small tables of src/symbol. */
#include "kallsyms.h"
#include "keyset.h"
#include "maps.h"
#include "pending.h"
#include "procs.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char good_maps[] =
	"55d0c0000000-55d0c0001000 r--p 00000000 fe:01 1234                       /usr/bin/app\n"
	"55d0c0001000-55d0c0005000 r-xp 00001000 fe:01 1234                       /usr/bin/app\n"
	"55d0c0005000-55d0c0006000 rw-p 00005000 fe:01 1234                       /usr/bin/app\n"
	"55d0c0006000-55d0c0008000 rw-p 00000000 00:00 0 \n"
	"7f0000000000-7f0000001000 r-xp 00000000 00:1f 99   /tmp/a b\\012c (deleted)\n"
	"7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0                          [vdso]\n"
	"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n";

Test(symbol_maps, parse)
{
	struct maps m;
	bool changed;
	struct mapping *p;
	size_t len;

	maps_init(&m, 7);
	cr_assert_eq(maps_parse(&m, good_maps, sizeof(good_maps) - 1, &changed), 0);
	cr_expect_not(changed);
	cr_assert_eq(m.cnt, 7);
	p = maps_find(&m, 0x55d0c0001000);
	cr_assert_not_null(p);
	cr_expect(p->exec && !p->write);
	cr_expect_eq(p->off, 0x1000);
	cr_expect_eq(p->ino, 1234);
	cr_expect_eq(p->dev, 0xfe << 20 | 1);
	cr_expect_str_eq(maps_path(&m, p), "/usr/bin/app");
	p = maps_find(&m, 0x7f0000000fff);
	cr_assert_not_null(p);
	cr_expect_eq(strncmp(maps_base_name(&m, p, &len), "a b\\012c", 8), 0);
	cr_expect_eq(len, 8);
	cr_expect_null(maps_find(&m, 0x7f0000001000));
	cr_expect_null(maps_find(&m, 0));
	cr_expect_null(maps_find(&m, UINT64_MAX));
	maps_done(&m);
}

Test(symbol_maps, hostile_text)
{
	char text[sizeof(good_maps)];
	unsigned int seed = 5;
	struct maps m;
	bool changed;

	maps_init(&m, 7);
	for (int i = 0; i < 20000; i++) {
		memcpy(text, good_maps, sizeof(text));
		for (int j = 0; j < i % 20; j++)
			text[(unsigned int)rand_r(&seed) % sizeof(text)] = (char)rand_r(&seed);
		cr_assert_eq(
			maps_parse(&m, text, (unsigned int)rand_r(&seed) % sizeof(text), &changed),
			0);
		for (size_t k = 0; k < m.cnt; k++) {
			size_t len;

			cr_assert_lt(m.v[k].start, m.v[k].end);
			cr_assert(!k || m.v[k - 1].end <= m.v[k].start, "sorted, apart");
			maps_base_name(&m, &m.v[k], &len);
		}
	}
	maps_done(&m);
}

Test(symbol_maps, marks_survive_a_refresh)
{
	static const char later[] =
		"55d0c0001000-55d0c0005000 r-xp 00001000 fe:01 1234   /usr/bin/app\n"
		"7e0000000000-7e0000001000 r-xp 00000000 fe:01 55     /usr/lib/new.so\n"
		"7f0000000000-7f0000001000 r-xp 00000000 fe:01 100    /usr/lib/other.so\n";
	struct maps m;
	bool changed;

	maps_init(&m, 7);
	cr_assert_eq(maps_parse(&m, good_maps, sizeof(good_maps) - 1, &changed), 0);
	maps_find(&m, 0x55d0c0001000)->told = true;
	cr_assert_eq(maps_parse(&m, later, sizeof(later) - 1, &changed), 0);
	cr_expect_not(changed, "nobody had looked at what went away");
	cr_expect(maps_find(&m, 0x55d0c0001000)->told);
	cr_expect_not(maps_find(&m, 0x7f0000000000)->told);
	maps_find(&m, 0x7f0000000000)->told = true;
	cr_assert_eq(maps_parse(&m, good_maps, sizeof(good_maps) - 1, &changed), 0);
	cr_expect(changed, "another file lies there now");
	maps_done(&m);
}

Test(symbol_maps, own_process)
{
	struct file_cache *c;
	struct elf_file *f, *again;
	struct maps m;
	struct mapping *p;
	uint64_t vaddr;
	bool changed;

	cr_assert_eq(file_cache_new(&c), 0);
	maps_init(&m, (uint32_t)getpid());
	cr_assert_eq(maps_refresh(&m, &changed), 0);
	p = maps_find(&m, (uintptr_t)getpid);
	cr_assert_not_null(p);
	f = maps_file(&m, p, c);
	cr_assert_not_null(f);
	cr_expect_eq(maps_vaddr(p, f, (uintptr_t)getpid, &vaddr), 0);
	/* other mappings of the file share it */
	again = maps_file(&m, p - 1, c);
	cr_expect(p[-1].ino != p->ino || again == f);
	maps_done(&m);
	file_cache_free(c);

	maps_init(&m, 0x7ffffffe);
	cr_expect_eq(maps_refresh(&m, &changed), -ESRCH);
	maps_done(&m);
}

static int load_kallsyms(const char *text, struct kallsyms **ret)
{
	char path[32];
	int fd = memfd_create("kallsyms", 0), err;

	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	err = kallsyms_new(path, ret);
	close(fd);
	return err;
}

Test(symbol_kallsyms, parse)
{
	struct kallsyms *k = NULL;
	const char *name, *module;
	uint64_t off;

	cr_assert_eq(load_kallsyms("ffffffff81000100 t __futex_wait\n"
				   "ffffffff81000100 T futex_wait\n"
				   "ffffffff81000200 D a_datum\n"
				   "nonsense\n\nffffffff81000300 T \n"
				   "ffffffff81000000 T _text\n"
				   "ffffffffc0000000 t ext4_sync_file\t[ext4]\n"
				   "ffffffffc0000100 t ext4_read\t[ext4]\n",
				   &k),
		     0);
	cr_expect_eq(kallsyms_cnt(k), 4);
	cr_assert_eq(kallsyms_find(k, 0xffffffff81000123, &name, &module, &off), 0);
	cr_expect_str_eq(name, "futex_wait");
	cr_expect_str_eq(module, "");
	cr_expect_eq(off, 0x23);
	cr_assert_eq(kallsyms_find(k, 0xffffffffc0000180, &name, &module, &off), 0);
	cr_expect_str_eq(name, "ext4_read");
	cr_expect_str_eq(module, "ext4");
	cr_expect_eq(kallsyms_find(k, 0xffffffff80ffffff, &name, &module, &off), -ENOENT);
	cr_expect_eq(kallsyms_find(k, 0xffffffffa0000000, &name, &module, &off), -ENOENT,
		     "a hole is no function");
	kallsyms_free(k);
}

Test(symbol_kallsyms, hidden_and_missing)
{
	struct kallsyms *k = NULL;

	cr_expect_eq(load_kallsyms("0000000000000000 T _text\n0000000000000000 t x\t[m]\n", &k),
		     -EACCES);
	cr_expect_eq(load_kallsyms("", &k), -ENOENT);
	cr_expect_eq(kallsyms_new("/nonexistent", &k), -ENOENT);
	cr_expect_null(k);
}

Test(symbol_tables, keyset_is_bounded)
{
	struct keyset s;
	size_t cap;

	keyset_init(&s, 1000);
	cr_expect_eq(keyset_add(&s, 5), 1);
	cr_expect_eq(keyset_add(&s, 5), 0);
	cr_expect(keyset_has(&s, 5));
	for (uint64_t i = 10; i < 100000; i++)
		cr_assert_eq(keyset_add(&s, i), 1);
	cap = s.cap;
	cr_expect_leq(cap, 4096);
	cr_expect_leq(s.cnt, 1000);
	cr_expect(keyset_has(&s, 99999));
	keyset_done(&s);
}

Test(symbol_tables, pending_counts_what_it_loses)
{
	struct pending *p;
	struct pending_keys k;

	cr_assert_eq(pending_new(&p), 0);
	pending_put(p, PENDING_EXTRA, 10, 1)->ustack = 77;
	pending_put(p, PENDING_EXTRA, 10, 1)->waker_ustack = 78;
	cr_expect_not(pending_take(p, PENDING_OPEN, 10, 1, &k));
	cr_expect_not(pending_take(p, PENDING_EXTRA, 10, 2, &k));
	cr_assert(pending_take(p, PENDING_EXTRA, 10, 1, &k));
	cr_expect_eq(k.ustack, 77);
	cr_expect_eq(k.waker_ustack, 78);
	cr_expect_not(pending_take(p, PENDING_EXTRA, 10, 1, &k), "taken once");
	cr_expect_eq(pending_lost(p), 0);
	for (uint32_t i = 0; i < 100000; i++)
		pending_put(p, PENDING_EXTRA, i, i);
	cr_expect_eq(pending_lost(p), 100000 - 4096);
	pending_free(p);
}

Test(symbol_tables, procs_are_bounded_and_reborn)
{
	struct procs *p;
	struct proc *a;
	uint32_t epoch, self = (uint32_t)getpid();

	cr_assert_eq(procs_new(NULL, &p), 0);
	a = procs_get(p, self);
	cr_assert_not_null(a);
	cr_expect_gt(a->now.maps.cnt, 5);
	epoch = a->epoch;
	cr_expect_eq(procs_get(p, self)->epoch, epoch);
	procs_reborn(p, self, 1000);
	a = procs_get(p, self);
	cr_expect_neq(a->epoch, epoch);
	cr_expect_eq(a->born, 1000);
	procs_exited(p, self);
	for (int i = 0; i < 3; i++)
		procs_tick(p);
	cr_expect_eq(procs_cnt(p), 0);
	for (uint32_t i = 0; i < 3000; i++)
		cr_assert_not_null(procs_get(p, 0x70000000 + i), "gone, but remembered as such");
	cr_expect_leq(procs_cnt(p), 512);
	procs_free(p);
}
