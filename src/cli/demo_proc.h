/* SPDX-License-Identifier: Apache-2.0 */
/* demo_proc: the demo's processes: a shop server with one port per cause, the stock service it
 * calls, a backup job that hogs one CPU, and the customers that drive it all. They are forked
 * before anything else is started, have their own session and end with criticast. */
#ifndef CC_DEMO_PROC_H
#define CC_DEMO_PROC_H

#include "cli.h"
#include "demo_log.h"

struct demo_opts {
	cc_ns slot_ns; /* how long each cause is driven */
	bool once;     /* one round, then the load ends; else for ever */
};

struct demo;

/* Starts all processes; the load waits for demo_go(). Call it while this process has one thread.
 * Tells the user what failed, or what this machine cannot show; caller owns *ret. */
CC_NODISCARD enum cli_exit demo_start(const struct demo_opts *o, struct demo **ret);
void demo_stop(struct demo *d); /* ends the processes; NULL is a no-op */

void demo_go(struct demo *d);
bool demo_alive(struct demo *d); /* all processes that should run do */
/* The log stays readable until demo_stop(). */
struct demo_shared *demo_log(struct demo *d);

/* What each process runs; none of them returns. */
_Noreturn void demo_server_run(struct demo_shared *sh, const int *listen_fds);
_Noreturn void demo_upstream_run(int listen_fd);
_Noreturn void demo_hog_run(struct demo_shared *sh);
_Noreturn void demo_load_run(struct demo_shared *sh, const struct demo_opts *o);

#endif
