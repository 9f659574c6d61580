/* SPDX-License-Identifier: Apache-2.0 */
#include "cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DEPTH_MAX 16 /* slices of slices; what lies deeper is nobody's service */

/* ---- hierarchies ---------------------------------------------------------------------------- */

/* What a mount is good for: v2 has every process once; so has systemd's own v1 hierarchy; the
 * others, one a controller, may have a cgroup that those do not. */
enum rank { RANK_NONE, RANK_V1, RANK_SYSTEMD, RANK_V2 };

/* "36 35 98:0 / /sys/fs/cgroup rw,noatime shared:1 - cgroup2 cgroup2 rw,nsdelegate": the place is
 * the fifth field, the type follows the lone '-'. @line is cut in pieces. */
static enum rank read_mount(char *line, char **ret_place)
{
	char *save = NULL, *tail = strstr(line, " - "), *type, *options;
	if (!tail)
		return RANK_NONE;
	*tail = 0;
	char *place = strtok_r(line, " ", &save);
	for (int i = 1; place && i < 5; i++)
		place = strtok_r(NULL, " ", &save);
	type = strtok_r(tail + 3, " \n", &save);
	strtok_r(NULL, " \n", &save); /* the source */
	options = strtok_r(NULL, " \n", &save);
	if (!place || !type)
		return RANK_NONE;
	*ret_place = place;
	if (!strcmp(type, "cgroup2"))
		return RANK_V2;
	if (strcmp(type, "cgroup"))
		return RANK_NONE;
	return options && strstr(options, "name=systemd") ? RANK_SYSTEMD : RANK_V1;
}

/* Calls @fn for the place of each hierarchy, the best first, until it returns other than -ENOENT.
 */
static int each_mount(const char *mounts, int (*fn)(const char *place, const char *arg, char *ret),
		      const char *arg, char ret[PATH_MAX])
{
	char line[2 * PATH_MAX];
	int err = -ENOENT;
	for (int rank = RANK_V2; rank > RANK_NONE && err == -ENOENT; rank--) {
		FILE *f = fopen(mounts ? mounts : "/proc/self/mountinfo", "re");
		if (!f)
			return -errno;
		while (err == -ENOENT && fgets(line, sizeof(line), f)) {
			char *place;
			if ((int)read_mount(line, &place) == rank)
				err = fn(place, arg, ret);
		}
		fclose(f);
	}
	return err;
}

static bool is_cgroup(const char *dir)
{
	char path[PATH_MAX + 16];
	snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	return access(path, F_OK) == 0;
}

static int join(const char *dir, const char *name, char ret[PATH_MAX])
{
	while (*name == '/')
		name++;
	int n = snprintf(ret, PATH_MAX, "%s/%s", dir, name);
	return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

static int below_mount(const char *place, const char *path, char *ret)
{
	int err = join(place, path, ret);
	return err ? err : is_cgroup(ret) ? 0 : -ENOENT;
}

int cgroup_find(const char *mounts, const char *path, char ret[PATH_MAX])
{
	if (*path == '/' && is_cgroup(path)) {
		int n = snprintf(ret, PATH_MAX, "%s", path);
		return n >= PATH_MAX ? -ENAMETOOLONG : 0;
	}
	return each_mount(mounts, below_mount, path, ret);
}

/* ---- units ---------------------------------------------------------------------------------- */

static bool is_dir(const char *dir, const struct dirent *e)
{
	char path[PATH_MAX];
	if (e->d_name[0] == '.')
		return false;
	/* a file system that does not tell: only a cgroup is of interest */
	return e->d_type == DT_DIR ||
	       (e->d_type == DT_UNKNOWN && !join(dir, e->d_name, path) && is_cgroup(path));
}

/* Looks for a directory @name in @dir and below. */
static int find_named(const char *dir, const char *name, int depth, char *ret)
{
	char path[PATH_MAX];
	struct dirent *e;
	int err = below_mount(dir, name, ret);
	if (err != -ENOENT || depth == DEPTH_MAX)
		return err;
	DIR *d = opendir(dir);
	if (!d)
		return -ENOENT;
	while (err == -ENOENT && (e = readdir(d)))
		if (is_dir(dir, e) && !join(dir, e->d_name, path))
			err = find_named(path, name, depth + 1, ret);
	closedir(d);
	return err;
}

static int unit_below(const char *place, const char *name, char *ret)
{
	return find_named(place, name, 0, ret);
}

int cgroup_find_unit(const char *mounts, const char *name, char ret[PATH_MAX])
{
	static const char *const suffixes[] = { ".service", ".slice", ".scope", ".socket",
						".mount",   ".swap",  NULL };
	char full[NAME_MAX + 1];
	const char *dot = strrchr(name, '.');
	bool whole = false;
	for (size_t i = 0; suffixes[i]; i++)
		whole |= dot && !strcmp(dot, suffixes[i]);
	int n = snprintf(full, sizeof(full), "%s%s", name, whole ? "" : ".service");
	if (n < 0 || n >= (int)sizeof(full))
		return -ENAMETOOLONG;
	if (strchr(full, '/'))
		return -ENOENT;
	return each_mount(mounts, unit_below, full, ret);
}

/* ---- members -------------------------------------------------------------------------------- */

/* -EOPNOTSUPP: a threaded cgroup, whose processes are listed at its domain's. */
static int each_listed(const char *dir, const char *file, int (*fn)(void *ctx, uint32_t pid),
		       void *ctx)
{
	char path[PATH_MAX + 32];
	unsigned int pid;
	int err = 0;
	snprintf(path, sizeof(path), "%s/%s", dir, file);
	FILE *f = fopen(path, "re");
	if (!f)
		return -errno;
	errno = 0;
	while (!err && fscanf(f, "%u", &pid) == 1)
		if (pid) /* 0: in a pid namespace that is not below ours */
			err = fn(ctx, pid);
	if (!err && ferror(f))
		err = errno == EOPNOTSUPP ? -EOPNOTSUPP : -ENOENT;
	fclose(f);
	return err;
}

static int each_below(const char *dir, int depth, int (*fn)(void *ctx, uint32_t pid), void *ctx)
{
	char path[PATH_MAX];
	struct dirent *e;
	int err = each_listed(dir, "cgroup.procs", fn, ctx);
	if (err == -EOPNOTSUPP)
		err = each_listed(dir, "cgroup.threads", fn, ctx);
	if (err || depth == DEPTH_MAX)
		return err;
	DIR *d = opendir(dir);
	if (!d)
		return -ENOENT;
	while (!err && (e = readdir(d)))
		if (is_dir(dir, e) && !join(dir, e->d_name, path)) {
			err = each_below(path, depth + 1, fn, ctx);
			if (err == -ENOENT) /* one that has just gone */
				err = 0;
		}
	closedir(d);
	return err;
}

int cgroup_each(const char *dir, int (*fn)(void *ctx, uint32_t pid), void *ctx)
{
	return each_below(dir, 0, fn, ctx);
}
