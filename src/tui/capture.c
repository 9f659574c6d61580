/* SPDX-License-Identifier: Apache-2.0 */
#include "capture.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static bool same_terminal(int a, int b)
{
	struct stat sa, sb;
	return isatty(a) && !fstat(a, &sa) && !fstat(b, &sb) && sa.st_rdev == sb.st_rdev;
}

void capture_begin(struct capture *c)
{
	int ends[2];
	*c = (struct capture){ -1, -1 };
	if (!same_terminal(STDERR_FILENO, STDOUT_FILENO))
		return;
	/* a full pipe refuses more: nobody waits for us to read it */
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK))
		return;
	int real = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	if (real < 0 || dup2(ends[1], STDERR_FILENO) < 0) {
		if (real >= 0)
			close(real);
		close(ends[0]);
	} else {
		*c = (struct capture){ real, ends[0] };
	}
	close(ends[1]);
}

void capture_end(struct capture *c)
{
	char buf[4096];
	ssize_t n;
	int real = c->real_fd, from = c->pipe_fd;
	*c = (struct capture){ -1, -1 };
	if (real < 0)
		return;
	dup2(real, STDERR_FILENO);
	close(real);
	while ((n = read(from, buf, sizeof(buf))) > 0)
		for (ssize_t at = 0; at < n;) {
			ssize_t w = write(STDERR_FILENO, buf + at, (size_t)(n - at));
			if (w <= 0 && errno != EINTR)
				break; /* there is nowhere to say so */
			at += CC_MAX(w, 0);
		}
	close(from);
}
