/* SPDX-License-Identifier: Apache-2.0 */
/* Cgroups are found by path and by unit in both versions' hierarchies, members in those below too.
 */
#include <criterion/criterion.h>

#if HAVE_BPF
#include "cgroup.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[] = "/tmp/cc-cgroup-XXXXXX", mounts[64];

static const char *at(const char *below)
{
	static char path[PATH_MAX];
	snprintf(path, sizeof(path), "%s/%s", root, below);
	return path;
}

static void put(const char *below, const char *text)
{
	FILE *f = fopen(at(below), "w");
	cr_assert(f);
	fputs(text, f);
	fclose(f);
}

static void make(const char *dir, const char *pids)
{
	char file[256];
	cr_assert_eq(mkdir(at(dir), 0755), 0, "%s", dir);
	snprintf(file, sizeof(file), "%s/cgroup.procs", dir);
	put(file, pids);
}

static void setup(void)
{
	char text[1024];
	cr_assert(mkdtemp(root));
	make("cpu", "1\n");
	make("cpu/batch", "9\n");
	make("systemd", "1\n");
	make("systemd/system.slice", "");
	make("systemd/system.slice/nginx.service", "70\n71\n");
	make("v2", "1\n");
	make("v2/app", "5\n0\n6\n");
	make("v2/app/workers", "7\n");
	make("v2/batch", "8\n");
	snprintf(mounts, sizeof(mounts), "%s/mountinfo", root);
	snprintf(text, sizeof(text),
		 "22 1 0:5 / /proc rw shared:1 - proc proc rw\n"
		 "30 1 0:20 / %s/cpu rw,relatime shared:2 - cgroup cgroup rw,cpu\n"
		 "31 1 0:21 / %s/systemd rw - cgroup cgroup rw,xattr,name=systemd\n"
		 "cut line\n"
		 "32 1 0:22 / %s/v2 rw,nosuid master:3 - cgroup2 none rw\n",
		 root, root, root);
	put("mountinfo", text);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *f)
{
	(void)st;
	(void)type;
	(void)f;
	return remove(path);
}

static void teardown(void) { nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS); }

TestSuite(cgroup, .init = setup, .fini = teardown);

static int sum(void *ctx, uint32_t pid)
{
	*(uint32_t *)ctx += pid;
	return 0;
}

static int stop(void *ctx, uint32_t pid)
{
	*(uint32_t *)ctx += pid;
	return -E2BIG;
}

static uint32_t members(const char *dir)
{
	uint32_t s = 0;
	cr_assert_eq(cgroup_each(dir, sum, &s), 0);
	return s;
}

Test(cgroup, path_below_a_mount_v2_first)
{
	char dir[PATH_MAX];
	cr_assert_eq(cgroup_find(mounts, "/batch", dir), 0);
	cr_assert_str_eq(dir, at("v2/batch"));
	cr_assert_eq(cgroup_find(mounts, "system.slice/nginx.service", dir), 0);
	cr_assert_str_eq(dir, at("systemd/system.slice/nginx.service"));
	cr_assert_eq(cgroup_find(mounts, "nosuch", dir), -ENOENT);
}

Test(cgroup, absolute_directory)
{
	char dir[PATH_MAX], want[PATH_MAX];
	snprintf(want, sizeof(want), "%s", at("cpu/batch"));
	cr_assert_eq(cgroup_find(mounts, want, dir), 0);
	cr_assert_str_eq(dir, want);
	cr_assert_eq(cgroup_find(mounts, "/tmp", dir), -ENOENT, "no cgroup");
}

Test(cgroup, members_and_those_below_without_foreign_ones)
{
	uint32_t s = 0;
	char dir[PATH_MAX];
	cr_assert_eq(cgroup_find(mounts, "app", dir), 0);
	cr_assert_eq(members(dir), 5 + 6 + 7);
	cr_assert_eq(cgroup_each(dir, stop, &s), -E2BIG);
	cr_assert_eq(s, 5, "ended at the first");
	cr_assert_eq(cgroup_each("/nosuch", sum, &s), -ENOENT);
}

Test(cgroup, unit_by_name)
{
	char dir[PATH_MAX], full[2 * NAME_MAX];
	cr_assert_eq(cgroup_find_unit(mounts, "nginx", dir), 0);
	cr_assert_eq(members(dir), 70 + 71);
	cr_assert_eq(cgroup_find_unit(mounts, "nginx.service", dir), 0);
	cr_assert_eq(cgroup_find_unit(mounts, "system.slice", dir), 0);
	cr_assert_eq(members(dir), 70 + 71);
	cr_assert_eq(cgroup_find_unit(mounts, "nosuch", dir), -ENOENT);
	cr_assert_eq(cgroup_find_unit(mounts, "../v2/app.slice", dir), -ENOENT);
	memset(full, 'x', sizeof(full) - 1);
	full[sizeof(full) - 1] = 0;
	cr_assert_eq(cgroup_find_unit(mounts, full, dir), -ENAMETOOLONG);
}
#endif
