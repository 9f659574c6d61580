/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz: what the targets share: their entry, and bytes as a file that has a path. */
#ifndef CC_FUZZ_H
#define CC_FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* A file in memory of these bytes. Returns its descriptor, for the caller to close. */
static inline int fuzz_file(const uint8_t *data, size_t len, char path[32])
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, len) != (ssize_t)len)
		abort();
	snprintf(path, 32, "/proc/self/fd/%d", fd);
	return fd;
}

#endif
