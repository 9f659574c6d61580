/* SPDX-License-Identifier: Apache-2.0 */
/* What session.c (the collector's thread) and session_ui.c (the UI's) share. The UI's side never
 * waits for the collector: no lock, and no memory that both ask malloc for. */
#ifndef CC_SESSION_PRIV_H
#define CC_SESSION_PRIV_H

#include "mailbox.h"
#include "newest.h"
#include "save.h"
#include "session.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/types.h>

#define SESSION_USED 4 /* a UI has two snapshots at most, and takes one more */

struct session {
	/* shared */
	struct mailbox snaps;                          /* struct snapshot, to the UI */
	_Atomic(struct snapshot *) used[SESSION_USED]; /* back from the UI, to be freed */
	struct newest cmds;                            /* to the collector */
	struct mailbox jobs;                           /* struct save_job, to the collector */
	_Atomic pid_t save_pid; /* of the process that saves; 0: none is to be waited for */
	atomic_bool stop;
	int event_fd, wake_fd;
	pthread_t thread;

	/* the UI thread's */
	int save_fd; /* what was saved comes here; -1: nothing is being saved */

	/* the collector thread's */
	struct collect_opts opts; /* what it begins with */
	void *signal_stack;       /* NULL: none was to be had */
	sem_t begun;
	int begin_err;
	struct collect *collect;
	const char *replay_path; /* NULL: live */
	struct cc_query query;
	struct filter *filter;
	struct tui_cmd cmd;         /* the newest */
	cc_ns tick_ns, tick_gap_ns; /* the last TICK's time, and to the one before */
	cc_ns next_step;            /* replay: wall time of the next TICK */
	int (*again)(void *ctx, struct collect_opts *ret);
	void *again_ctx;
	void (*ports)(const struct snapshot *s, char *buf, size_t cap);
	char listens[64]; /* what it told last */
	cc_ns asked_ns;   /* when, by the wall */
	char gone[128];   /* who exited, and when */
	bool waiting;     /* for the target to run again */
	bool ended;       /* no more records will come */
	bool target_gone;
	cc_ns fill_to;      /* replay: a first look is shown while reading on to there; 0: no */
	cc_ns look_ns;      /* live: the past that is shown, or is being gone to; 0: none */
	bool looking;       /* not there yet */
	cc_ns build_ns;     /* what the last snapshot cost */
	cc_ns published_ns; /* when, by the wall */
	int err;
};

void session_signal(int fd); /* an eventfd */
void session_clear(int fd);

#endif
