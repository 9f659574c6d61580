/* SPDX-License-Identifier: Apache-2.0 */
#include "out_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* In @dir without a name, where the file system can: nothing is left when we are killed. */
static int open_nameless(const struct out_file *o, mode_t mode)
{
	char dir[PATH_MAX];
	char *slash;

	snprintf(dir, sizeof(dir), "%s", o->path);
	slash = strrchr(dir, '/');
	if (slash)
		slash[slash == dir] = '\0';
	return open(slash ? dir : ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
}

static int open_new(struct out_file *o, mode_t mode)
{
	int fd = open_nameless(o, mode);

	snprintf(o->tmp, sizeof(o->tmp), "%s.%d.tmp", o->path, (int)getpid());
	return fd >= 0 ? fd : open(o->tmp, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, mode);
}

bool out_file_is(const char *out, const char *in)
{
	struct stat o, i;
	bool known = stat(out, &o) == 0 &&
		     (strcmp(in, "-") ? stat(in, &i) : fstat(STDIN_FILENO, &i)) == 0;

	return known && S_ISREG(o.st_mode) && o.st_dev == i.st_dev && o.st_ino == i.st_ino;
}

int out_file_open(struct out_file *o, const char *path)
{
	char *real = realpath(path, NULL);
	struct stat st;
	bool there = stat(path, &st) == 0;
	int fd, len;

	*o = (struct out_file){ 0 };
	len = snprintf(o->path, sizeof(o->path), "%s", real ? real : path);
	free(real);
	if (len >= (int)sizeof(o->path))
		return -ENAMETOOLONG;
	if (there && S_ISDIR(st.st_mode))
		return -EISDIR;
	if (there && access(o->path, W_OK)) /* else a rename would go around the permissions */
		return -errno;
	fd = there && !S_ISREG(st.st_mode) ? open(o->path, O_WRONLY | O_CLOEXEC)
					   : open_new(o, there ? st.st_mode & 0777 : 0666);
	if (fd < 0)
		return -errno;
	o->f = fdopen(fd, "w");
	if (!o->f) {
		close(fd);
		return -ENOMEM;
	}
	errno = 0; /* what the writer leaves there tells why it failed */
	return 0;
}

/* A nameless file gets its name. */
static int give_name(const struct out_file *o)
{
	char fd[32];

	if (access(o->tmp, F_OK) == 0)
		return 0;
	snprintf(fd, sizeof(fd), "/proc/self/fd/%d", fileno(o->f));
	return linkat(AT_FDCWD, fd, AT_FDCWD, o->tmp, AT_SYMLINK_FOLLOW) ? -errno : 0;
}

int out_file_close(struct out_file *o, int err)
{
	if (err == -EIO && errno)
		err = -errno;
	errno = 0;
	if (fflush(o->f) && (!err || err == -EIO))
		err = errno ? -errno : -EIO;
	if (!err && ferror(o->f))
		err = -EIO;
	if (!err && *o->tmp)
		err = give_name(o);
	errno = 0;
	if (fclose(o->f) && !err)
		err = errno ? -errno : -EIO;
	if (!err && *o->tmp && rename(o->tmp, o->path))
		err = -errno;
	if (err && *o->tmp)
		unlink(o->tmp);
	return err;
}
