/* SPDX-License-Identifier: Apache-2.0 */
/* cli: the commands, their options and exit codes. Each command is one file, cmd_<name>(). */
#ifndef CC_CLI_H
#define CC_CLI_H

#define CC_VERSION "0.1.0"

#include "base.h"

enum cli_exit { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_CANNOT_TRACE = 3 };

/* id, name, arguments, one-line help. Dispatch, usage and the man page come from this table. */
#define CLI_COMMANDS(X)                                                                       \
	X(TOP, top, "", "live view of the slowest requests; --replay FILE shows a recording") \
	X(CATCH, catch, "", "wait for a slow request, print its story as Markdown, end")      \
	X(RECORD, record, "", "record into a .criticast file")                                \
	X(ANALYZE, analyze, "FILE", "report on a recording: text, JSON or Markdown")          \
	X(IMPORT, import, "FILE",                                                             \
	  "turn text of perf script, ftrace, trace-cmd or systrace into a recording")         \
	X(EXPORT, export, "FILE",                                                             \
	  "turn a recording into files of other tools: pprof, Perfetto, OTLP, ...")           \
	X(ENV, env, "", "what this kernel and user can do, and how to fix what is missing")   \
	X(PROBE_STATS, probe_stats, "", "run count and cost of every kernel program")         \
	X(GO_SMOKE, go_smoke, "",                                                             \
	  "follow a Go process for 5 s: version, offsets, probes, what they cost")            \
	X(EVAL, eval, "",                                                                     \
	  "compare with the truth that a server wrote: whose work a goroutine did")           \
	X(DEMO, demo, "", "a built-in server with known causes; --check compares with its truth")

#define X(id, name, args, help) CLI_##id,
enum cli_command { CLI_COMMANDS(X) CLI_COMMAND_CNT };
#undef X

/* @argv[0] is the command's name. Each returns an enum cli_exit. */
#define X(id, name, args, help) int cmd_##name(int argc, char **argv);
CLI_COMMANDS(X)
#undef X

#define CLI_LIST_MAX 64
#define CLI_WORDS_MAX 16

/* What the options table fills in; a command reads the fields of the options it accepts. */
struct cli_opts {
	uint32_t pids[CLI_LIST_MAX], pid_cnt;
	uint32_t ports[CLI_LIST_MAX], port_cnt;
	const char *comms[CLI_WORDS_MAX]; /* each list with its number behind it */
	uint32_t comm_cnt;
	const char *cgroups[CLI_WORDS_MAX];
	uint32_t cgroup_cnt;
	const char *units[CLI_WORDS_MAX];
	uint32_t unit_cnt;
	uint32_t follow;
	const char *replay, *record, *out;
	cc_ns slow, timeout;
	uint32_t count;
	cc_ns dur, interval, window; /* interval 0: not said */
	bool batch, json, ascii;
	uint32_t iterations; /* 0: no end */
	const char *theme, *script;
	cc_ns min_block, stack_min;
	uint32_t sample, sample_hz;
	const char *stack_tier, *req_tier, *go; /* "auto", or a tier's name */
	const char *go_offsets, *go_binary, *go_version;
	bool force;
	uint64_t memory, ring_bytes, snap_bytes;
	const char *request, *filter, *format, *from, *to;
	uint32_t top_n, min_confidence;
	const char *pprof, *folded, *folded_wakers, *perfetto, *otlp, *otlp_profiles, *csv,
		*csv_requests, *json_file;
	cc_ns ring, trigger; /* record: 0: the whole stream */
	uint64_t max_size;   /* bytes; 0: no bound */
	bool no_symbols, no_cache;
	const char *gt_log, *trace, *mode;
	uint32_t min_precision; /* in 1/10000; 0: none */
	bool help_keys, check, serve, debuginfod;
	/* what is left: positional arguments */
	const char *args[4];
	uint32_t arg_cnt;
	bool help_shown; /* --help was asked and answered: exit 0 */
	bool count_runs; /* no option: for commands that tell what the programs cost */
};

/* Reads the options of @cmd; on a wrong one writes one line to stderr and returns CLI_USAGE.
 * Wants between @min_args and @max_args positional ones. Strings are borrowed from @argv. */
CC_NODISCARD enum cli_exit cli_parse(enum cli_command cmd, int argc, char **argv, uint32_t min_args,
				     uint32_t max_args, struct cli_opts *ret);

/* "criticast: " + the text + newline, on stderr, sanitized. Returns @code, so that a command can
 * end with `return cli_fail(CLI_FAILED, ...)`. */
CC_PRINTF(2, 3) enum cli_exit cli_fail(enum cli_exit code, const char *fmt, ...);

/* Flushes stdout; a failed write (full disk, closed pipe) becomes CLI_FAILED with its line. */
enum cli_exit cli_finish_stdout(enum cli_exit code);

/* Is something named that can be traced? */
bool cli_has_target(const struct cli_opts *o);

void cli_usage(void); /* all commands, on stdout */

#endif
