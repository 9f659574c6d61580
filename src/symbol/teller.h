/* SPDX-License-Identifier: Apache-2.0 */
/* teller: writes the MODULE and NAME records, each once. Used by the resolver only. */
#ifndef CC_TELLER_H
#define CC_TELLER_H

#include "kallsyms.h"
#include "keyset.h"
#include "places.h"
#include "procs.h"
#include "source.h"

struct teller {
	bool names; /* else, of user space, only modules: what a wait is for is told by kernel names
		     */
	struct file_cache *files;
	struct kallsyms *kernel; /* owned; NULL: names are hidden or cannot be read */
	int kernel_err;          /* why it is NULL */
	struct places *places;   /* owned; NULL: no thread could be had, or no names are wanted */
	struct keyset named;     /* frames, addresses and files told before */
	bool kernel_told;        /* the kernel's MODULE, or the note that it is hidden */
	uint64_t name_cnt, module_cnt;
	/* of the record that is being fed */
	cc_ns ts;
	cc_record_fn *out;
	void *ctx;
};

CC_NODISCARD int teller_init(struct teller *t, struct file_cache *files, const char *kallsyms,
			     bool names);
void teller_done(struct teller *t);

/* Gives a record on. All from here return 0, -ENOMEM or what t->out returned. What has no name is
 * not an error. */
int tell_record(struct teller *t, const struct cc_rec *rec, size_t len);
int tell_user_frames(struct teller *t, struct proc *proc, struct maps *m, const __u64 *ip,
		     size_t cnt); /* of a stack in @m, which are @proc's, now or in the past */
/* What has become known of frames told before. Waits for what is not known yet up to @wait_ms. */
int tell_places(struct teller *t, struct procs *procs, int wait_ms);
int tell_kernel_frames(struct teller *t, const __u64 *ip, size_t cnt);

/* How many of the innermost frames are our own probes, and what called them: no part of the wait.
 */
size_t probe_frames(const struct teller *t, const __u64 *ip, size_t cnt);
int tell_address(struct teller *t, struct proc *proc, uint64_t addr); /* of data: a lock */
/* The file that @tgid has open as @fd, if it still is inode @ino. */
int tell_fd(struct teller *t, uint32_t tgid, int fd, uint64_t ino, uint32_t dev);

#endif
