/* SPDX-License-Identifier: Apache-2.0 */
/* demo_journal: a file whose syncs wait for a disk, and for hardly anything else. How that is done
 * depends on the disk: what a slow one does for 64 KB, a fast one does only for megabytes that
 * nobody has to copy first. So it is tried out, once, before the demo begins. */
#ifndef CC_DEMO_JOURNAL_H
#define CC_DEMO_JOURNAL_H

#include "base.h"

struct demo_journal {
	int fd;         /* unlinked; -1: nothing here waits for a disk */
	uint32_t bytes; /* written by each sync */
	void *block;    /* of this process: what is written; NULL: demo_journal_use() is missing */
};

/* Looks for a directory and a way to write; @j->fd stays -1 when there is none. */
void demo_journal_open(struct demo_journal *j);

/* To be called by the process that syncs. Returns 0 or -errno. */
CC_NODISCARD int demo_journal_use(struct demo_journal *j);
void demo_journal_close(struct demo_journal *j);

/* One write and its fsync. */
CC_NODISCARD bool demo_journal_sync(const struct demo_journal *j);

/* The calling thread runs as soon as it is woken, where that is allowed. */
void demo_run_at_once(bool on);

#endif
