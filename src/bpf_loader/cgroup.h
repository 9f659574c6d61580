/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup: which directory a cgroup or a unit of systemd is, v1 or v2, and who is in it. */
#ifndef CC_CGROUP_H
#define CC_CGROUP_H

#include "base.h"

#include <limits.h>

/* The directory of the cgroup @path: itself, or @path below the mount of one of the hierarchies,
 * v2 first. @mounts, so many /proc/self/mountinfo (NULL: that). Returns 0, -ENOENT; -errno. */
CC_NODISCARD int cgroup_find(const char *mounts, const char *path, char ret[PATH_MAX]);

/* That of systemd's unit @name; without a suffix it is a service. Needs no systemd: the directory
 * has the unit's name. */
CC_NODISCARD int cgroup_find_unit(const char *mounts, const char *name, char ret[PATH_MAX]);

/* Calls @fn for each process in directory @dir and in those below, until it returns an error, which
 * is returned then. -ENOENT: the directory is gone. */
CC_NODISCARD int cgroup_each(const char *dir, int (*fn)(void *ctx, uint32_t pid), void *ctx);

#endif
