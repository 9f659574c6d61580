/* SPDX-License-Identifier: Apache-2.0 */
/* options: one table of every option: parser, field, commands that take it, help. */
#include "cli.h"
#include "fmt.h"
#include "sanitize.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define C(cmd) (1u << CLI_##cmd)
#define TRACING (C(TOP) | C(CATCH) | C(RECORD) | C(PROBE_STATS) | C(DEMO))
#define VIEWING (C(TOP) | C(DEMO))

/* kind, field, default, short, metavar, commands, help */
#define CLI_OPTIONS(X)                                                                             \
	X(list, pids, 0, 'p', "PID", C(TOP) | C(CATCH) | C(RECORD) | C(PROBE_STATS) | C(GO_SMOKE), \
	  "trace this process and its children (may be repeated)")                                 \
	X(ports, ports, 0, 'P', "N", C(TOP) | C(CATCH) | C(RECORD) | C(PROBE_STATS),               \
	  "trace the processes that listen on this port, 1 to 65535 (may be repeated)")            \
	X(words, comms, 0, 0, "NAME", C(TOP) | C(CATCH) | C(RECORD),                               \
	  "trace processes with this name (may be repeated)")                                      \
	X(words, cgroups, 0, 0, "PATH", C(TOP) | C(CATCH) | C(RECORD),                             \
	  "trace who is in this cgroup, v1 or v2, or moves in; a directory, or a path below the "  \
	  "mount")                                                                                 \
	X(words, units, 0, 0, "NAME", C(TOP) | C(CATCH) | C(RECORD),                               \
	  "trace this unit of systemd: nginx, or app.slice")                                       \
	X(u32, follow, 0, 0, "N", C(TOP) | C(CATCH) | C(RECORD),                                   \
	  "trace processes of this host that end the target's waits too, up to N hops: they "      \
	  "explain, they give no rows")                                                            \
	X(str, replay, NULL, 'r', "FILE", C(TOP) | C(CATCH),                                       \
	  "read a recording instead of a live process")                                            \
	X(str, record, NULL, 0, "FILE", VIEWING, "record into FILE as well")                       \
	X(str, out, "trace.criticast", 'o', "FILE", C(RECORD) | C(IMPORT), "file to write")        \
	X(size, max_size, 0, 0, "BYTES", C(RECORD), "stop when the file has BYTES (500M)")         \
	X(dur, ring, 0, 0, "T", C(RECORD),                                                         \
	  "keep only the last T (60s); write it on Enter, SIGUSR1 or --trigger")                   \
	X(dur, trigger, 0, 0, "T", C(RECORD),                                                      \
	  "with --ring: write it when a request took T (200ms)")                                   \
	X(flag, no_symbols, false, 0, NULL, C(RECORD),                                             \
	  "leave names out: frames are file and offset, with build-ids")                           \
	X(dur, slow, CC_MS(200), 's', "T", C(CATCH), "what takes at least T is slow (200ms)")      \
	X(u32, count, 1, 'c', "N", C(CATCH), "end after N slow requests (1)")                      \
	X(dur, timeout, 0, 0, "T", C(CATCH), "give up after T; exit 1 when none came")             \
	X(dur, dur, 0, 'd', "T", C(RECORD) | C(PROBE_STATS) | C(DEMO) | C(GO_SMOKE),               \
	  "stop after T (30s)")                                                                    \
	X(dur, interval, 0, 'i', "T", C(TOP) | C(RECORD) | C(DEMO), "refresh every T (1s)")        \
	X(dur, window, CC_S(60), 'w', "T", VIEWING, "show requests that ended in the last T")      \
	X(flag, batch, false, 'b', NULL, C(TOP),                                                   \
	  "plain text, one table a refresh, no terminal UI")                                       \
	X(flag, json, false, 'j', NULL, C(TOP) | C(CATCH),                                         \
	  "one JSON object a refresh; catch: a request")                                           \
	X(u32, iterations, 0, 'n', "N", C(TOP), "stop after N refreshes")                          \
	X(str, script, NULL, 0, "FILE", VIEWING,                                                   \
	  "no terminal: keys from FILE, screens to files as it says; - is stdin")                  \
	X(str, theme, NULL, 't', "NAME", VIEWING, "colours: a name, or a .theme file")             \
	X(flag, ascii, false, 0, NULL, VIEWING, "only ASCII on the screen")                        \
	X(dur, min_block, 0, 0, "T", TRACING, "sum up waits shorter than T; 0: all are recorded")  \
	X(dur, stack_min, CC_US(50), 0, "T", TRACING, "take stacks of waits longer than T")        \
	X(u32, sample, 1, 0, "N", C(TOP) | C(CATCH) | C(RECORD),                                   \
	  "stacks and paths for 1 request in N")                                                   \
	X(hz, sample_hz, 99, 0, "HZ", TRACING,                                                     \
	  "samples of running threads a second and CPU, at most 10000; 0: none")                   \
	X(str, stack_tier, "auto", 0, "TIER", TRACING,                                             \
	  "when stacks are taken: auto, late, waking, eager")                                      \
	X(str, req_tier, "auto", 0, "TIER", TRACING,                                               \
	  "how requests are found: auto, 1 socket lengths, 2 sequence numbers, 3 system calls")    \
	X(str, go, "auto", 0, "TIER", TRACING | C(GO_SMOKE),                                       \
	  "what is followed of goroutines: auto, off, id, waits, full")                            \
	X(str, go_offsets, NULL, 0, "FILE", TRACING | C(GO_SMOKE),                                 \
	  "offsets of Go's structures by version, in place of those built in")                     \
	X(str, go_binary, NULL, 0, "FILE", C(GO_SMOKE), "read this file, not /proc/PID/exe")       \
	X(str, go_version, NULL, 0, "V", C(GO_SMOKE), "the program was built by this version")     \
	X(flag, force, false, 0, NULL, TRACING | C(GO_SMOKE),                                      \
	  "probe Go functions also where a hit costs 10 us")                                       \
	X(budget, memory, 256ull << 20, 0, "BYTES", TRACING | C(ANALYZE) | C(EXPORT),              \
	  "budget for history and analysis, at least 1M")                                          \
	X(size, ring_bytes, 0, 0, "BYTES", TRACING,                                                \
	  "kernel ring buffer (4M; 16M for Go programs)")                                          \
	X(size, snap_bytes, 8192, 0, "BYTES", TRACING, "user stack copied per slow wait")          \
	X(flag, no_cache, false, 0, NULL, TRACING,                                                 \
	  "keep no tables of large programs in $XDG_CACHE_HOME/criticast (~/.cache)")              \
	X(flag, debuginfod, false, 0, NULL, TRACING,                                               \
	  "fetch missing debug files from $DEBUGINFOD_URLS")                                       \
	X(str, request, NULL, 'R', "ID", C(ANALYZE) | C(EXPORT),                                   \
	  "only this one: <cookie>#<ordinal>, 0x<cookie>, or a tid")                               \
	X(str, from, NULL, 0, "TIME", C(ANALYZE) | C(EXPORT),                                      \
	  "only from TIME on: seconds of the trace's clock, or +T after its start")                \
	X(str, to, NULL, 0, "TIME", C(ANALYZE) | C(EXPORT), "only up to TIME")                     \
	X(str, filter, NULL, 'f', "EXPR", C(TOP) | C(CATCH) | C(ANALYZE) | C(EXPORT),              \
	  "only requests that match, as: wait=lock lat>20ms")                                      \
	X(str, gt_log, NULL, 0, "FILE", C(EVAL), "the server's CRITICAST_GT lines; - is stdin")    \
	X(str, trace, NULL, 0, "FILE", C(EVAL), "recording of the same time; none: the log alone") \
	X(str, mode, "all", 0, "M", C(EVAL), "e1-lineage, e2-sudog, e3-suppress, e4-naive or all") \
	X(share, min_precision, 0, 0, "P", C(EVAL),                                                \
	  "exit 1 if e3-suppress is right in less than P (0..1) where it claims to know, if it "   \
	  "knows less than 0.95, if paths agree less than 0.9")                                    \
	X(str, format, "text", 'F', "F", C(ANALYZE) | C(EVAL) | C(DEMO),                           \
	  "text, json or md; of demo --check, json has a line per request")                        \
	X(u32, top_n, UINT32_MAX, 'N', "N", C(TOP) | C(ANALYZE) | C(EXPORT),                       \
	  "how many requests, slowest first; 0: all (20; top: 500; export: all)")                  \
	X(u32, min_confidence, 0, 0, "C", C(ANALYZE), "count pieces below C (0..100) as unknown")  \
	X(str, pprof, NULL, 0, "FILE", C(EXPORT), "write a pprof profile (gzip); - is stdout")     \
	X(str, folded, NULL, 0, "FILE", C(EXPORT), "write folded stacks")                          \
	X(str, folded_wakers, NULL, 0, "FILE", C(EXPORT),                                          \
	  "write folded stacks with those of wakers beneath, upside down")                         \
	X(str, perfetto, NULL, 0, "FILE", C(EXPORT), "write a trace for ui.perfetto.dev")          \
	X(str, otlp, NULL, 0, "URL", C(EXPORT),                                                    \
	  "send a trace for each request to an OpenTelemetry collector, as http://host:4318; or "  \
	  "write a file")                                                                          \
	X(str, otlp_profiles, NULL, 0, "URL", C(EXPORT),                                           \
	  "send the stacks as OTLP profiles (in development)")                                     \
	X(str, csv, NULL, 0, "FILE", C(EXPORT), "write the pieces of the paths as CSV")            \
	X(str, csv_requests, NULL, 0, "FILE", C(EXPORT), "write the requests as CSV")              \
	X(str, json_file, NULL, 0, "FILE", C(EXPORT),                                              \
	  "write the JSON of analyze, of all requests")                                            \
	X(flag, help_keys, false, 0, NULL, C(TOP), "list the keys of the screens")                 \
	X(flag, check, false, 0, NULL, C(DEMO), "compare with the server's own truth, no UI")      \
	X(flag, serve, false, 0, NULL, C(DEMO), "only run the server and its load")

struct opt {
	const char *field;
	int (*parse)(const char *s, void *dst); /* 0 or -errno, *dst untouched then; NULL: flag */
	size_t off;
	int key;
	const char *metavar, *help;
	unsigned int commands;
};

static int str_parse(const char *s, void *dst)
{
	if (!*s)
		return -EINVAL;
	*(const char **)dst = s;
	return 0;
}

static int u64_parse(const char *s, uint64_t max, char **end, uint64_t *ret)
{
	if (!isdigit((unsigned char)*s))
		return -EINVAL;
	errno = 0;
	unsigned long long v = strtoull(s, end, 10);
	if (errno || v > max)
		return -ERANGE;
	*ret = v;
	return 0;
}

static int u32_parse(const char *s, void *dst)
{
	char *end;
	uint64_t v;
	int err = u64_parse(s, UINT32_MAX, &end, &v);
	if (err || *end)
		return err ? err : -EINVAL;
	*(uint32_t *)dst = (uint32_t)v;
	return 0;
}

static int size_parse(const char *s, void *dst)
{
	static const char units[] = "KMG";
	char *end;
	uint64_t v;
	int err = u64_parse(s, UINT64_MAX >> 32, &end, &v);
	if (err)
		return err;
	const char *u = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
	if (u) {
		v <<= 10 * (u - units + 1);
		end++;
		if (*end == 'i' && end[1] == 'B')
			end += 2;
	}
	if (*end || v == 0)
		return -EINVAL;
	*(uint64_t *)dst = v;
	return 0;
}

/* With less even a quiet server's requests are forgotten before they are told. */
#define BUDGET_LEAST (1ull << 20)

static int budget_parse(const char *s, void *dst)
{
	uint64_t bytes;
	int err = size_parse(s, &bytes);
	if (!err && bytes < BUDGET_LEAST)
		err = -ERANGE;
	if (!err)
		*(uint64_t *)dst = bytes;
	return err;
}

/* Each sample is an interrupt of the CPU, of everybody on it. */
#define HZ_MAX 10000

static int hz_parse(const char *s, void *dst)
{
	uint32_t hz;
	int err = u32_parse(s, &hz);
	if (!err && hz > HZ_MAX)
		err = -ERANGE;
	if (!err)
		*(uint32_t *)dst = hz;
	return err;
}

static int dur_parse(const char *s, void *dst) { return fmt_parse_duration(s, dst); }

static int share_parse(const char *s, void *dst) /* "0.99" as 9900 */
{
	char *end;
	double v;

	if (!isdigit((unsigned char)*s))
		return -EINVAL;
	v = strtod(s, &end);
	if (*end)
		return -EINVAL;
	if (v > 1)
		return -ERANGE;
	*(uint32_t *)dst = (uint32_t)(v * 10000 + 0.5);
	return 0;
}

struct list { /* the layout of every list field: values, then their number */
	uint32_t v[CLI_LIST_MAX], cnt;
};
_Static_assert(offsetof(struct cli_opts, pid_cnt) - offsetof(struct cli_opts, pids) ==
		       offsetof(struct list, cnt),
	       "a list field is a struct list");

static int numbers_parse(const char *s, uint64_t max, void *dst) /* "1,2,3" */
{
	struct list *l = dst;
	do {
		char *end;
		uint64_t v;
		int err = u64_parse(s, max, &end, &v);
		if (err || v == 0 || (*end && *end != ','))
			return err ? err : -EINVAL;
		if (l->cnt == CLI_LIST_MAX)
			return -E2BIG;
		l->v[l->cnt++] = (uint32_t)v;
		s = *end ? end + 1 : NULL;
	} while (s);
	return 0;
}

static int list_parse(const char *s, void *dst) { return numbers_parse(s, UINT32_MAX, dst); }
static int ports_parse(const char *s, void *dst) { return numbers_parse(s, UINT16_MAX, dst); }

struct words { /* the layout of every words field */
	const char *v[CLI_WORDS_MAX];
	uint32_t cnt;
};
_Static_assert(offsetof(struct cli_opts, comm_cnt) - offsetof(struct cli_opts, comms) ==
		       offsetof(struct words, cnt),
	       "a words field is a struct words");

static int words_parse(const char *s, void *dst)
{
	struct words *w = dst;
	if (!*s)
		return -EINVAL;
	if (w->cnt == CLI_WORDS_MAX)
		return -E2BIG;
	w->v[w->cnt++] = s;
	return 0;
}

#define flag_parse NULL
#define X(kind, field, def, key, arg, cmds, help) \
	{ #field, kind##_parse, offsetof(struct cli_opts, field), key, arg, help, cmds },
static const struct opt table[] = { CLI_OPTIONS(X) };
#undef X

/* list fields start empty, whatever their row says; so the generic default cannot be assigned */
#define DEFAULT_list(field, def)
#define DEFAULT_ports(field, def)
#define DEFAULT_words(field, def)
#define DEFAULT_str(field, def) .field = (def),
#define DEFAULT_dur(field, def) .field = (def),
#define DEFAULT_u32(field, def) .field = (def),
#define DEFAULT_hz(field, def) .field = (def),
#define DEFAULT_size(field, def) .field = (def),
#define DEFAULT_budget(field, def) .field = (def),
#define DEFAULT_share(field, def) .field = (def),
#define DEFAULT_flag(field, def) .field = (def),
#define X(kind, field, def, key, arg, cmds, help) DEFAULT_##kind(field, def)
static const struct cli_opts defaults = { CLI_OPTIONS(X) };
#undef X

static const struct {
	const char *name, *args, *help;
} commands[] = {
#define X(id, name, args, help) { #name, args, help },
	CLI_COMMANDS(X)
#undef X
};

/* Names are typed with '-'; the renamed ones read better than their fields. */
static void option_name(const struct opt *o, char buf[32])
{
	static const char *const renamed[][2] = { { "pids", "pid" },
						  { "ports", "port" },
						  { "comms", "comm" },
						  { "cgroups", "cgroup" },
						  { "units", "unit" },
						  { "top_n", "top" },
						  { "iterations", "iterations" },
						  { "min_confidence", "min-confidence" } };
	const char *s = o->field;
	for (size_t i = 0; i < ARRAY_SIZE(renamed); i++)
		if (!strcmp(s, renamed[i][0]))
			s = renamed[i][1];
	size_t n = 0;
	for (; *s && n < 31; s++)
		buf[n++] = *s == '_' ? '-' : *s;
	buf[n] = '\0';
}

static void command_name(enum cli_command cmd, char buf[32])
{
	size_t n = 0;
	for (const char *s = commands[cmd].name; *s && n < 31; s++)
		buf[n++] = *s == '_' ? '-' : *s;
	buf[n] = '\0';
}

static void command_help(enum cli_command cmd)
{
	char name[32];
	command_name(cmd, name);
	printf("criticast %s [options] %s\n  %s\n\n", name, commands[cmd].args, commands[cmd].help);
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		const struct opt *o = &table[i];
		if (!(o->commands & 1u << cmd))
			continue;
		char key[8] = "    ", left[64];
		option_name(o, name);
		if (o->key)
			snprintf(key, sizeof(key), "-%c, ", o->key);
		snprintf(left, sizeof(left), "%s--%s %s", key, name, o->metavar ? o->metavar : "");
		printf("  %-28s %s\n", left, o->help);
	}
}

bool cli_has_target(const struct cli_opts *o)
{
	return o->pid_cnt || o->port_cnt || o->comm_cnt || o->cgroup_cnt || o->unit_cnt;
}

void cli_usage(void)
{
	puts("criticast: which wait carried a slow request's time, and who ended it\n");
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		char name[32], left[64];
		command_name((enum cli_command)i, name);
		snprintf(left, sizeof(left), "%s %s", name, commands[i].args);
		printf("  criticast %-14s %s\n", left, commands[i].help);
	}
	puts("\n`criticast COMMAND --help` lists a command's options. Exit codes: 0 done, 1 "
	     "failed,\n"
	     "2 usage, 3 cannot trace here. The manual: criticast(1).");
}

enum cli_exit cli_fail(enum cli_exit code, const char *fmt, ...)
{
	char raw[1024], clean[1024];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(raw, sizeof(raw), fmt, ap);
	va_end(ap);
	sanitize_text(raw, strlen(raw), clean, sizeof(clean));
	fprintf(stderr, "criticast: %s\n", clean);
	return code;
}

static bool reader_gone(void)
{
	struct pollfd p = { .fd = STDOUT_FILENO, .events = POLLOUT };
	return poll(&p, 1, 0) == 1 && p.revents & POLLERR;
}

enum cli_exit cli_finish_stdout(enum cli_exit code)
{
	errno = 0;
	if ((fflush(stdout) && errno == EPIPE) || (ferror(stdout) && reader_gone()))
		return code; /* the reader has seen enough, as `head` does */
	if (ferror(stdout))
		return cli_fail(CLI_FAILED, "cannot write to stdout: %s",
				errno ? strerror(errno) : "output error");
	return code;
}

enum { KEY_HELP = 'h', KEY_LONG = 256 };

/* getopt's tables for one command; lopts has room for all rows, --help and the end mark. */
static void build_getopt(enum cli_command cmd, struct option *lopts, char *sopts, char (*names)[32])
{
	size_t n = 0;
	*sopts++ = ':';
	*sopts++ = KEY_HELP;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		const struct opt *o = &table[i];
		if (!(o->commands & 1u << cmd))
			continue;
		option_name(o, names[i]);
		lopts[n++] = (struct option){ names[i], o->parse ? required_argument : no_argument,
					      NULL, KEY_LONG + (int)i };
		if (o->key) {
			*sopts++ = (char)o->key;
			if (o->parse)
				*sopts++ = ':';
		}
	}
	*sopts = '\0';
	lopts[n++] = (struct option){ "help", no_argument, NULL, KEY_HELP };
	lopts[n] = (struct option){ 0 };
}

static const struct opt *find_opt(enum cli_command cmd, int key)
{
	if (key >= KEY_LONG)
		return &table[key - KEY_LONG];
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (table[i].key == key && table[i].commands & 1u << cmd)
			return &table[i];
	return NULL;
}

static enum cli_exit take_value(const struct opt *o, const char *arg, struct cli_opts *opts)
{
	void *dst = (char *)opts + o->off;
	if (!o->parse) {
		*(bool *)dst = true;
		return CLI_OK;
	}
	int err = o->parse(arg, dst);
	if (!err)
		return CLI_OK;
	char name[32];
	option_name(o, name);
	return cli_fail(CLI_USAGE, "--%s '%s': %s; wanted %s (%s)", name, arg,
			err == -ERANGE  ? "out of range"
			: err == -E2BIG ? "too many values"
					: "not valid",
			o->metavar, o->help);
}

enum cli_exit cli_parse(enum cli_command cmd, int argc, char **argv, uint32_t min_args,
			uint32_t max_args, struct cli_opts *ret)
{
	struct option lopts[ARRAY_SIZE(table) + 2];
	char sopts[2 * ARRAY_SIZE(table) + 4], names[ARRAY_SIZE(table)][32], cname[32];
	struct cli_opts opts = defaults;
	command_name(cmd, cname);
	build_getopt(cmd, lopts, sopts, names);
	optind = 1;
	opterr = 0;
	for (int key; (key = getopt_long(argc, argv, sopts, lopts, NULL)) != -1;) {
		if (key == KEY_HELP) {
			command_help(cmd);
			opts.help_shown = true;
			*ret = opts;
			return cli_finish_stdout(CLI_OK);
		}
		if (key == ':')
			return cli_fail(CLI_USAGE,
					"option '%s' needs a value; see criticast %s --help",
					argv[optind - 1], cname);
		const struct opt *o = key == '?' ? NULL : find_opt(cmd, key);
		if (!o)
			return cli_fail(CLI_USAGE, "unknown option '%s'; see criticast %s --help",
					argv[optind - 1], cname);
		enum cli_exit bad = take_value(o, optarg, &opts);
		if (bad)
			return bad;
	}
	for (; optind < argc; optind++) {
		if (opts.arg_cnt == max_args || opts.arg_cnt == ARRAY_SIZE(opts.args))
			return cli_fail(CLI_USAGE,
					"unexpected argument '%s'; see criticast %s --help",
					argv[optind], cname);
		opts.args[opts.arg_cnt++] = argv[optind];
	}
	if (opts.arg_cnt < min_args)
		return cli_fail(CLI_USAGE, "%s needs %s; see criticast %s --help", cname,
				commands[cmd].args, cname);
	*ret = opts;
	return CLI_OK;
}
