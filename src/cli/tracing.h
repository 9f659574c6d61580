/* SPDX-License-Identifier: Apache-2.0 */
/* tracing: from a command's options to a live source with its resolver, or one clear line. */
#ifndef CC_TRACING_H
#define CC_TRACING_H

#include "cli.h"
#include "collect.h"

/* Loads and attaches for the targets of @opts and sets source and resolver of @ret, which
 * collect_new() then takes. On failure the line is written and its exit code returned. */
CC_NODISCARD enum cli_exit tracing_open(const struct cli_opts *opts, struct collect_opts *ret);

/* The same without a line: 0 or -errno, with @why when there is more to say than the error. */
CC_NODISCARD int tracing_try(const struct cli_opts *opts, struct collect_opts *ret,
			     struct cc_err *why);

/* The source that @opts asks for: the recording --replay, or a live one as by tracing_open(). */
CC_NODISCARD enum cli_exit source_open(const struct cli_opts *opts, struct collect_opts *ret);

/* Reads --filter; *ret NULL without one. CLI_USAGE with its line when it does not parse. */
CC_NODISCARD enum cli_exit filter_option(const struct cli_opts *opts, struct filter **ret);

/* Puts the calling thread, the one that drains, before the load it watches: on a machine that is
 * busy, which is when people look, a collector that waits for a CPU loses events. Only for one that
 * does nothing but drain: an engine on the same thread would take the CPU from the target. Without
 * the right to do so it stays where it is. */
void tracing_go_first(void);

/* Opens @path to record into. NULL path: nothing to do. Same contract. */
CC_NODISCARD enum cli_exit recording_open(const char *path, struct trace_writer **ret);

/* The line for an error of collect_step() and friends. */
enum cli_exit tracing_failed(int err);

#endif
