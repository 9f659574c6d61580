/* SPDX-License-Identifier: Apache-2.0 */
/* out_file: a file that is there whole or not at all: written under another name, renamed at the
 * end. What was there before stays until then. */
#ifndef CC_OUT_FILE_H
#define CC_OUT_FILE_H

#include <limits.h>
#include <stdio.h>

#include "base.h"

struct out_file {
	FILE *f;
	char path[PATH_MAX];     /* links followed */
	char tmp[PATH_MAX + 32]; /* the name until it is whole; "": none is needed */
};

/* Is @out the file that is read as @in ("-": stdin)? Writing it would destroy what is read. */
bool out_file_is(const char *out, const char *in);

/* Begins @path. A pipe or a device is written as it is. Returns 0 or -errno. */
CC_NODISCARD int out_file_open(struct out_file *o, const char *path);

/* Ends it: @err (what writing said) and a full disk leave nothing behind. Returns 0, @err, or
 * -errno, which tells more than an @err of -EIO. */
CC_NODISCARD int out_file_close(struct out_file *o, int err);

#endif
