/* SPDX-License-Identifier: Apache-2.0 */
#include "input.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define SPOOL_MAX (64ull << 30) /* a small gzip file may claim more than any disk has */

int input_fail(struct cc_err *err, int code, const char *path, const char *why)
{
	err->pos = -1;
	snprintf(err->msg, sizeof(err->msg), "cannot read %s: %s",
		 strcmp(path, "-") == 0 ? "stdin" : path, why);
	return code;
}

static int temp_file(void)
{
	const char *dir = getenv("TMPDIR");
	int fd = open(dir && *dir ? dir : "/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	return fd < 0 ? memfd_create("criticast", MFD_CLOEXEC) : fd;
}

static int write_all(int fd, const uint8_t *data, size_t len)
{
	while (len) {
		ssize_t n = write(fd, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

static int copy_pipe(int from, int to)
{
	struct pollfd p = { .fd = from, .events = POLLIN };
	uint8_t buf[1 << 16];
	uint64_t total = 0;
	ssize_t n;

	while ((n = read(from, buf, sizeof(buf))) != 0) {
		if (n < 0 && errno == EAGAIN)
			poll(&p, 1, -1);
		else if (n < 0 && errno != EINTR)
			return -errno;
		if (n < 0)
			continue;
		int err = write_all(to, buf, (size_t)n);

		total += (uint64_t)n;
		if (err || total > SPOOL_MAX)
			return err ? err : -EFBIG;
	}
	return 0;
}

/* A stream that is cut off gives what was before the cut: the format in it says that it is cut. */
static int inflate_file(int from, int to)
{
	static const size_t size = 1 << 16;
	uint8_t *buf = malloc(size);
	gzFile gz = gzdopen(from, "rb");
	uint64_t total = 0;
	int n = 0, err = buf && gz ? 0 : -ENOMEM;

	if (!gz)
		close(from);
	while (!err && (n = gzread(gz, buf, (unsigned int)size)) > 0) {
		err = write_all(to, buf, (size_t)n);
		total += (uint64_t)n;
		if (total > SPOOL_MAX)
			err = -EFBIG;
	}
	if (!err && n < 0 && !total)
		err = -EBADMSG;
	if (gz)
		gzclose(gz);
	free(buf);
	return err;
}

/* Replaces *@fd by a copy that @copy makes. @copy_closes: it has closed *@fd. */
static int spool(int *fd, int (*copy)(int, int), bool copy_closes)
{
	int to = temp_file();

	if (to < 0)
		return -errno;
	int err = copy(*fd, to);

	if (!copy_closes)
		close(*fd);
	*fd = to;
	return err;
}

static int make_regular(int *fd)
{
	uint8_t magic[2];
	struct stat st;
	int err = 0;

	if (fstat(*fd, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode))
		err = spool(fd, copy_pipe, false);
	else if (!S_ISREG(st.st_mode))
		return -ENOTSUP;
	if (!err && pread(*fd, magic, 2, 0) == 2 && magic[0] == 0x1f && magic[1] == 0x8b) {
		lseek(*fd, 0, SEEK_SET);
		err = spool(fd, inflate_file, true);
	}
	if (!err && lseek(*fd, 0, SEEK_SET) < 0)
		err = -errno;
	return err;
}

static const char *why_not(int err)
{
	switch (-err) {
	case EISDIR:
		return "it is a directory";
	case ENOTSUP:
		return "not a regular file, nor a pipe";
	case EBADMSG:
		return "damaged gzip data";
	default:
		return strerror(-err);
	}
}

int input_open(const char *path, struct cc_err *err, int *ret_fd)
{
	/* not to wait for ever on a FIFO that nobody writes */
	int fd = strcmp(path, "-") == 0 ? dup(STDIN_FILENO)
					: open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd < 0)
		return input_fail(err, -errno, path, strerror(errno));
	int code = make_regular(&fd);

	if (code) {
		close(fd);
		return input_fail(err, code, path, why_not(code));
	}
	*ret_fd = fd;
	return 0;
}
