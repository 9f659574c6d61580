/* SPDX-License-Identifier: Apache-2.0 */
/* go_bin: a Go program's file: all of struct go_target, stripped or not, PIE, static, cgo. Go 1.18
 * and newer, amd64 and arm64. The file is hostile. */
#ifndef CC_GO_BIN_H
#define CC_GO_BIN_H

#include "go_live.h"
#include "go_target.h"

#include <sys/types.h>

struct elf_file;

struct go_bin {
	struct go_target t;
	struct elf_file *file; /* owned */
	uint64_t allgs;        /* as linked; 0: not known */
};

struct go_bin_opts {
	const char *offsets; /* a file in the form of go_offsets.json; NULL: the one built in */
	const char *version; /* "go1.22.0": instead of what the file tells; NULL: no */
};

/* @o: NULL for all as built in. Takes @fd (of /proc/PID/exe, say), also on failure. Returns 0;
 * -ENOEXEC if it is no Go program; -ENOTSUP if it is one that is too old or for another CPU;
 * -EBADMSG if it is damaged; -ENOMEM; -EIO; -EINVAL for @o. Unless it is -ENOMEM, @err says why in
 * one line. */
CC_NODISCARD int go_bin_open(int fd, const struct go_bin_opts *o, struct go_bin **ret,
			     struct cc_err *err);
/* Judges the layout by a running process of this file, of whose threads @s was seen; if it is wrong
 * or there is none, finds another one in the process. Then t.layout is right, and t.layout_by says
 * how it was found. Returns 0; -EAGAIN if too little was seen: come again with more; -EINVAL if no
 * layout is right; -ESRCH or another -errno if the process cannot be read; -ENOMEM. @ret_v is how
 * the samples were judged; on failure ret_v->why says why. */
CC_NODISCARD int go_bin_judge(struct go_bin *b, pid_t pid, const struct go_sample *s, size_t cnt,
			      struct go_verdict *ret_v);

void go_bin_free(struct go_bin *b); /* NULL is a no-op */

#endif
