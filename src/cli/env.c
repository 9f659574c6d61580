/* SPDX-License-Identifier: Apache-2.0 */
/* env: what this kernel and user can do, probe by probe, with the fix for what is missing, and
 * whether tracing really starts. */
#include "cli.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#if HAVE_BPF
#include "loader.h"
#include "probe.h"
#include "uprobe.h"

#define PROBES_MAX 64

static const char *const words[] = {
	[LOADER_PROBE_NO] = "no",
	[LOADER_PROBE_YES] = "yes",
	[LOADER_PROBE_UNKNOWN] = "?",
};

static void print_probes(void)
{
	struct loader_probe p[PROBES_MAX];
	uint32_t cnt = loader_probe(p, PROBES_MAX);
	const char *group = "";
	for (uint32_t i = 0; i < cnt; i++) {
		if (strcmp(group, p[i].group))
			printf("%s\n", group = p[i].group);
		printf("  %-4s %-26s %s%s\n", words[p[i].state], p[i].name, p[i].gives,
		       p[i].needed ? " (needed)" : "");
		if (p[i].state == LOADER_PROBE_NO)
			printf("       %-26s -> %s\n", "", p[i].fix);
	}
}

static const char *stack_tier_name(enum loader_stack_tier t)
{
	static const char *const names[] = {
		[LOADER_STACK_LATE] = "late",
		[LOADER_STACK_WAKING] = "waking",
		[LOADER_STACK_EAGER] = "eager",
		[LOADER_STACK_NONE] = "none",
	};
	return t < ARRAY_SIZE(names) && names[t] ? names[t] : "?";
}

static void print_uprobe(void)
{
	struct uprobe_price p;
	if (uprobe_measure(&p))
		printf("  no   %-26s no waits of goroutines: --go id is as far as it goes\n",
		       "uprobes");
	else
		printf("  yes  %-26s %.1f us a hit, %.1f us on a nop of 5 bytes, besides the "
		       "program\n",
		       "uprobes", (double)p.trap / 1e3, (double)p.nop / 1e3);
}

/* The only proof that tracing works: it starts, on ourselves, with requests when it can. */
static enum cli_exit try_to_trace(void)
{
	uint32_t self = (uint32_t)getpid();
	struct loader_opts o = { .pids = &self, .pid_cnt = 1, .rules = LOADER_RULES_ON };
	struct loader_stats st = { 0 };
	struct cc_rule_cache rules;
	struct cc_source *s;
	struct cc_err why;
	int err = loader_source_new(&o, &why, &s);
	if (err) {
		printf("tracing\n  no   %s\n", why.msg);
		return CLI_CANNOT_TRACE;
	}
	bool unwinds = loader_rule_cache(s, &rules) && rules.rule;
	err = loader_stats(s, &st);
	if (err) {
		cc_source_free(s);
		printf("tracing\n  no   the maps cannot be read: %s\n", strerror(-err));
		return CLI_CANNOT_TRACE;
	}
	printf("tracing\n  yes  %-26s stacks: %s tier, %s; requests: %s; %u programs\n",
	       "starts here", stack_tier_name(st.stack_tier),
	       unwinds ? "unwound in the kernel" : "copied", loader_req_tier_name(st.req_tier),
	       st.prog_cnt);
	if (st.req_why[0])
		printf("  but  %-26s %s\n", "requests", st.req_why);
	if (st.left_out[0])
		printf("  but  %-26s this kernel refuses it: done without\n", st.left_out);
	cc_source_free(s);
	print_uprobe();
	return CLI_OK;
}
#endif

int cmd_env(int argc, char **argv)
{
	struct cli_opts o;
	struct utsname u;
	enum cli_exit bad = cli_parse(CLI_ENV, argc, argv, 0, 0, &o);
	if (bad || o.help_shown)
		return bad;
	if (!uname(&u))
		printf("criticast %s on %s %s %s\n", CC_VERSION, u.sysname, u.release, u.machine);
#if HAVE_BPF
	print_probes();
	return cli_finish_stdout(try_to_trace());
#else
	printf("tracing\n  no   built without live tracing (BPF=0); build with `make`\n");
	return cli_finish_stdout(CLI_CANNOT_TRACE);
#endif
}
