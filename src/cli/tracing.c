/* SPDX-License-Identifier: Apache-2.0 */
#include "tracing.h"
#include "filter.h"
#include "resolver.h"
#include "trace.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#if HAVE_BPF
#include "go_find.h"
#include "loader.h"

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
	{ "auto", LOADER_REQ_AUTO },
	{ "sock", LOADER_REQ_SOCK },
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
	if (!o->pid_cnt && !o->port_cnt && !o->comm)
		return cli_fail(CLI_USAGE,
				"nothing to trace: name a target with --pid N or --port N");
	return CLI_OK;
}

static enum cli_exit open_source(const struct cli_opts *o, struct cc_source **ret)
{
	int stack = find_tier(stack_tiers, ARRAY_SIZE(stack_tiers), o->stack_tier);
	if (stack < 0)
		return cli_fail(CLI_USAGE,
				"--stack-tier '%s': wanted auto, late, waking, eager or none",
				o->stack_tier);
	int req = find_tier(req_tiers, ARRAY_SIZE(req_tiers), o->req_tier);
	if (req < 0)
		return cli_fail(CLI_USAGE, "--req-tier '%s': wanted auto, sock or none",
				o->req_tier);
	int go = find_tier(go_tiers, ARRAY_SIZE(go_tiers), o->go);
	if (go < 0)
		return cli_fail(CLI_USAGE, "--go '%s': wanted auto, off, id, waits or full", o->go);
	struct loader_opts lo = {
		.pids = o->pids,
		.pid_cnt = o->pid_cnt,
		.ports = o->ports,
		.port_cnt = o->port_cnt,
		.comm = o->comm,
		.min_block_ns = o->min_block,
		.stack_min_ns = o->stack_min,
		.sample_n = o->sample,
		.stack_tier = (enum loader_stack_tier)stack,
		.req_tier = (enum loader_req_tier)req,
		.interval_ns = o->interval,
		.snap_bytes = (uint32_t)CC_MIN(o->snap_bytes, (uint64_t)CC_SNAP_MAX),
		.ring_bytes = o->ring_bytes,
	};
	struct cc_err why = { .pos = -1 };
	int err = go != LOADER_GO_OFF ? go_find_new(o, (enum loader_go_tier)go, &lo.go) : 0;
	if (!err)
		err = loader_source_new(&lo, &why, ret);
	if (!err)
		return CLI_OK;
	bool cannot = err == -EPERM || err == -EACCES || err == -EOPNOTSUPP || err == -ENOSYS;
	return cli_fail(cannot           ? CLI_CANNOT_TRACE
			: err == -EINVAL ? CLI_USAGE
					 : CLI_FAILED,
			"%s", why.msg[0] ? why.msg : strerror(-err));
}

enum cli_exit tracing_open(const struct cli_opts *opts, struct collect_opts *ret)
{
	enum cli_exit bad = check_targets(opts);
	if (!bad)
		bad = open_source(opts, &ret->source);
	if (bad)
		return bad;
	const struct resolver_opts ro = { .names = true };
	int err = resolver_new(&ro, &ret->resolver);
	return err ? tracing_failed(err) : CLI_OK;
}

#else /* built with BPF=0 */

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
