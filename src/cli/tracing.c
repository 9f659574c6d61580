/* SPDX-License-Identifier: Apache-2.0 */
#include "tracing.h"
#include "filter.h"
#include "raw_stack.h"
#include "resolver.h"
#include "trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#if HAVE_BPF
#include "go_find.h"
#include "loader.h"
#include "rights.h"

struct tier {
	const char *name;
	int tier;
};

static const struct tier stack_tiers[] = {
	{ "auto", LOADER_STACK_AUTO },     { "late", LOADER_STACK_LATE },
	{ "waking", LOADER_STACK_WAKING }, { "eager", LOADER_STACK_EAGER },
	{ "none", LOADER_STACK_NONE },
};
static const struct tier req_tiers[] = {
	{ "auto", LOADER_REQ_AUTO }, { "1", LOADER_REQ_SOCK },  { "2", LOADER_REQ_SEQ },
	{ "2b", LOADER_REQ_SEQ_FN }, { "3", LOADER_REQ_CALLS }, { "sock", LOADER_REQ_SOCK },
	{ "none", LOADER_REQ_NONE },
};

static const struct tier go_tiers[] = {
	{ "auto", LOADER_GO_AUTO },   { "off", LOADER_GO_OFF },   { "id", LOADER_GO_ID },
	{ "waits", LOADER_GO_WAITS }, { "full", LOADER_GO_FULL },
};

static int find_tier(const struct tier *t, size_t cnt, const char *name)
{
	for (size_t i = 0; i < cnt; i++)
		if (!strcmp(t[i].name, name))
			return t[i].tier;
	return -EINVAL;
}

static enum cli_exit check_targets(const struct cli_opts *o)
{
	if (!cli_has_target(o))
		return cli_fail(CLI_USAGE,
				"nothing to trace: name a target with --pid N or --port N");
	return CLI_OK;
}

/* -EINVAL with @why for a tier that there is not. */
static int tier_option(const struct tier *t, size_t cnt, const char *option, const char *name,
		       const char *wanted, struct cc_err *why)
{
	int tier = find_tier(t, cnt, name);
	if (tier < 0)
		snprintf(why->msg, sizeof(why->msg), "%s '%s': wanted %s", option, name, wanted);
	return tier;
}

static int open_source(const struct cli_opts *o, struct cc_source **ret, struct cc_err *why)
{
	int stack = tier_option(stack_tiers, ARRAY_SIZE(stack_tiers), "--stack-tier", o->stack_tier,
				"auto, late, waking, eager or none", why);
	int req = tier_option(req_tiers, ARRAY_SIZE(req_tiers), "--req-tier", o->req_tier,
			      "auto, 1, 2, 2b, 3 or none", why);
	int go = tier_option(go_tiers, ARRAY_SIZE(go_tiers), "--go", o->go,
			     "auto, off, id, waits or full", why);
	if (stack < 0 || req < 0 || go < 0)
		return -EINVAL;
	struct loader_opts lo = {
		.pids = o->pids,
		.pid_cnt = o->pid_cnt,
		.ports = o->ports,
		.port_cnt = o->port_cnt,
		.comms = o->comms,
		.comm_cnt = o->comm_cnt,
		.cgroups = o->cgroups,
		.cgroup_cnt = o->cgroup_cnt,
		.units = o->units,
		.unit_cnt = o->unit_cnt,
		.follow = o->follow,
		.count_runs = o->count_runs,
		.min_block_ns = o->min_block,
		.stack_min_ns = o->stack_min,
		.sample_n = o->sample,
		.sample_hz = o->sample_hz,
		.stack_tier = (enum loader_stack_tier)stack,
		.req_tier = (enum loader_req_tier)req,
		.interval_ns = o->interval,
		.snap_bytes = (uint32_t)CC_MIN(o->snap_bytes, (uint64_t)CC_SNAP_MAX),
		.ring_bytes = o->ring_bytes,
		.rules = LOADER_RULES_ON,
	};
	const char *verify = getenv("CRITICAST_VERIFY"); /* tests and bench-stacks */
	if (verify)
		lo.rules = *verify == '0' ? LOADER_RULES_OFF : LOADER_RULES_VERIFY;
	int err = go != LOADER_GO_OFF ? go_find_new(o, (enum loader_go_tier)go, &lo.go) : 0;
	return err ? err : loader_source_new(&lo, why, ret);
}

int tracing_try(const struct cli_opts *opts, struct collect_opts *ret, struct cc_err *why)
{
	struct resolver_opts ro = { .names = !opts->no_symbols, .keep_tables = !opts->no_cache };
	struct cc_rule_cache rules;
	*why = (struct cc_err){ .pos = -1 };
	int err = open_source(opts, &ret->source, why);
	rights_narrow(); /* threads that are started from here on have no more than this one */
	if (!opts->debuginfod) /* the library would ask it by itself */
		unsetenv("DEBUGINFOD_URLS");
	if (!err && loader_rule_cache(ret->source, &rules))
		ro.rules = &rules;
	return err ? err : resolver_new(&ro, &ret->resolver);
}

enum cli_exit tracing_open(const struct cli_opts *opts, struct collect_opts *ret)
{
	struct cc_err why;
	enum cli_exit bad = check_targets(opts);
	if (bad)
		return bad;
	int err = tracing_try(opts, ret, &why);
	if (!err)
		return CLI_OK;
	if (err == -ENOMEM)
		return tracing_failed(err);
	bool cannot = err == -EPERM || err == -EACCES || err == -EOPNOTSUPP || err == -ENOSYS;
	return cli_fail(cannot           ? CLI_CANNOT_TRACE
			: err == -EINVAL ? CLI_USAGE
					 : CLI_FAILED,
			"%s", why.msg[0] ? why.msg : strerror(-err));
}

#else /* built with BPF=0 */

int tracing_try(const struct cli_opts *opts, struct collect_opts *ret, struct cc_err *why)
{
	(void)opts;
	(void)ret;
	(void)why;
	return -EOPNOTSUPP;
}

enum cli_exit tracing_open(const struct cli_opts *opts, struct collect_opts *ret)
{
	(void)opts;
	(void)ret;
	return cli_fail(CLI_CANNOT_TRACE,
			"built without live tracing (BPF=0); "
			"build with `make`, or show a recording: top --replay FILE");
}

#endif

enum cli_exit source_open(const struct cli_opts *opts, struct collect_opts *ret)
{
	struct cc_err why;
	if (!opts->replay)
		return tracing_open(opts, ret);
	if (cli_has_target(opts))
		return cli_fail(
			CLI_USAGE,
			"--replay reads a file, in which all targets are: without --pid, --port, "
			"--comm, --cgroup and --unit; --filter chooses among its requests");
	int err = trace_source_new(opts->replay, &why, &ret->source);
	return err ? cli_fail(CLI_FAILED, "%s", why.msg) : CLI_OK;
}

enum cli_exit filter_option(const struct cli_opts *opts, struct filter **ret)
{
	struct cc_err why;
	*ret = NULL;
	int err = opts->filter ? filter_parse(opts->filter, &why, ret) : 0;
	if (err == -ENOMEM)
		return tracing_failed(err);
	return err ? cli_fail(CLI_USAGE, "filter '%s': %s at character %d", opts->filter, why.msg,
			      why.pos + 1)
		   : CLI_OK;
}

void tracing_go_first(void) { setpriority(PRIO_PROCESS, (id_t)gettid(), -15); }

enum cli_exit recording_open(const char *path, struct trace_writer **ret)
{
	if (!path)
		return CLI_OK;
	struct cc_err why;
	int err = trace_writer_open(path, &why, ret);
	return err ? cli_fail(CLI_FAILED, "%s", why.msg) : CLI_OK;
}

enum cli_exit tracing_failed(int err)
{
	return cli_fail(CLI_FAILED, "%s",
			err == -ENOMEM ? "out of memory; a smaller --memory may help"
				       : strerror(-err));
}
