/* SPDX-License-Identifier: Apache-2.0 */
/* Where the configuration lies, and how it is read and written. Source of the place: XDG Base
 * Directory Specification. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config.h"

static int failed(struct cc_err *err, const char *path, int e)
{
	*err = (struct cc_err){ .pos = -1 };
	snprintf(err->msg, sizeof(err->msg), "%.140s: %s", path, strerror(-e));
	return e;
}

int config_path(char *buf, size_t cap)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	int n;
	if (config && *config == '/') /* a relative one is to be ignored, says the specification */
		n = snprintf(buf, cap, "%s/criticast/config", config);
	else if (home && *home)
		n = snprintf(buf, cap, "%s/.config/criticast/config", home);
	else
		return -ENOENT;
	return (size_t)n < cap ? 0 : -ENAMETOOLONG;
}

/* The whole file, by malloc. 0, -ENOENT, -EFBIG, -EILSEQ for a NUL in it, another -errno. */
static int read_file(const char *path, char **ret)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* no wait on a FIFO */
	if (fd < 0)
		return -errno;
	char *text = malloc(CONFIG_MAX_BYTES + 1);
	ssize_t n = 0;
	size_t len = 0;
	int err = text ? 0 : -ENOMEM;
	while (!err && len <= CONFIG_MAX_BYTES &&
	       (n = read(fd, text + len, CONFIG_MAX_BYTES + 1 - len)) > 0)
		len += (size_t)n;
	if (!err && n < 0)
		err = -errno;
	else if (!err && len > CONFIG_MAX_BYTES)
		err = -EFBIG;
	else if (!err && memchr(text, 0, len))
		err = -EILSEQ;
	close(fd);
	if (err) {
		free(text);
		return err;
	}
	text[len] = '\0';
	*ret = text;
	return 0;
}

int config_load(struct config *c, struct cc_err *err)
{
	char path[PATH_MAX], *text;
	int e = config_path(path, sizeof(path));
	if (e == -ENOENT)
		return 0;
	if (!e)
		e = read_file(path, &text);
	if (e == -ENOENT || e == -ENOTDIR ||
	    e == -EACCES) /* EACCES: another user's HOME, by sudo */
		return 0;
	if (e)
		return failed(err, path, e);
	e = config_parse(text, c, err);
	free(text);
	if (e) {
		struct cc_err at = { .pos = err->pos };
		if (err->pos)
			snprintf(at.msg, sizeof(at.msg), "%.80s:%d: %.110s", path, err->pos,
				 err->msg);
		else
			snprintf(at.msg, sizeof(at.msg), "%.80s: %.110s", path, err->msg);
		*err = at;
	}
	return e;
}

/* Makes the directories that @path lies in. */
static int make_parents(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		int err = mkdir(path, 0700) && errno != EEXIST ? -errno : 0;
		*slash = '/';
		if (err)
			return err;
	}
	return 0;
}

static int write_all(int fd, const char *s, size_t n)
{
	while (n) {
		ssize_t w = write(fd, s, n);
		if (w < 0 && errno != EINTR)
			return -errno;
		s += CC_MAX(w, 0);
		n -= (size_t)CC_MAX(w, 0);
	}
	return 0;
}

/* Beside @path, then in its place: a reader sees the old text or the new one. */
static int replace_file(const char *path, const char *text)
{
	char tmp[PATH_MAX];
	struct stat st;
	mode_t mode = stat(path, &st) ? 0600 : st.st_mode & 0777;
	if ((size_t)snprintf(tmp, sizeof(tmp), "%s.XXXXXX", path) >= sizeof(tmp))
		return -ENAMETOOLONG;
	int fd = mkostemp(tmp, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int err = write_all(fd, text, strlen(text));
	if (!err && (fchmod(fd, mode) || fsync(fd)))
		err = -errno;
	if (close(fd) && !err)
		err = -errno;
	if (!err && rename(tmp, path))
		err = -errno;
	if (err)
		unlink(tmp);
	return err;
}

/* What @path is a link to, so that the link stays and its file is written. */
static int follow_links(char path[PATH_MAX])
{
	char real[PATH_MAX];
	struct stat st;
	if (realpath(path, real)) {
		strcpy(path, real);
		return 0;
	}
	if (errno != ENOENT)
		return -errno;
	return lstat(path, &st) ? 0 : -ENOLINK; /* a link to nothing: where to is not ours to say */
}

int config_save(const struct config *c, struct cc_err *err)
{
	char path[PATH_MAX], *old = NULL;
	int e = config_path(path, sizeof(path));
	if (e)
		return failed(err, "no place for the configuration: HOME is not set", e);
	e = make_parents(path);
	if (!e)
		e = follow_links(path);
	if (!e)
		e = read_file(path, &old);
	if (e == -ENOENT)
		e = 0;
	if (e) {
		free(old);
		return failed(err, path, e);
	}
	char *text = config_merge(old ? old : "", c);
	free(old);
	e = text ? replace_file(path, text) : -ENOMEM;
	free(text);
	return e ? failed(err, path, e) : 0;
}
