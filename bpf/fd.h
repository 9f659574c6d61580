/* SPDX-License-Identifier: GPL-2.0-only */
/* fd: from a file descriptor to its file. */
#ifndef CC_BPF_FD_H
#define CC_BPF_FD_H

#include "maps.h"

#define S_IFMT 0170000
#define S_IFSOCK 0140000
#define S_IFREG 0100000
#define S_IFBLK 0060000
#define S_IFDIR 0040000
#define S_IFCHR 0020000
#define S_IFIFO 0010000

static __always_inline struct file *fd_file(struct task_struct *p, __u32 fd)
{
	struct files_struct *files = p->files; /* a BTF pointer: plain loads, which may fault */
	struct fdtable *t = files ? files->fdt : NULL;
	struct file *f = NULL;

	if (!t || fd >= t->max_fds)
		return NULL;
	bpf_probe_read_kernel(&f, sizeof(f), t->fd + fd);
	return f;
}

#endif
