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

/* A field of *@p. With LOOK_BY_CAST, which one file alone may define (see shared.bpf.c), by a plain
 * load, which costs next to nothing, where the kernel takes our word for what @p points to (6.2).
 */
#ifdef LOOK_BY_CAST
extern void *bpf_rdonly_cast(const void *p, __u32 type) __ksym __weak;

#define LOOK(p, field)                                                                           \
	(cfg.has_cast_kfunc                                                                      \
		 ? ((typeof(p))bpf_rdonly_cast(p, bpf_core_type_id_kernel(typeof(*(p)))))->field \
		 : BPF_CORE_READ(p, field))
#else
#define LOOK(p, field) BPF_CORE_READ(p, field)
#endif

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
