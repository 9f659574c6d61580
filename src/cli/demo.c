// SPDX-License-Identifier: Apache-2.0
/* demo: criticast on a server of its own whose slowness has known causes. */
#include "cli.h"
#include "demo_check.h"
#include "demo_proc.h"
#include "stop_signal.h"
#include "top.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SHOW_SLOT CC_MS(1500) /* the last minute shows every cause four times */

/* The recording that comes with criticast: installed, or in the source tree. */
static bool find_recording(char *buf, size_t cap)
{
	static const char *const places[] = { "../share/criticast/demo.criticast",
					      "../testdata/demo.criticast",
					      "../../testdata/demo.criticast" };
	char exe[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	if (n <= 0)
		return false;
	exe[n] = '\0';
	char *slash = strrchr(exe, '/');
	if (!slash)
		return false;
	*slash = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		int len = snprintf(buf, cap, "%s/%s", exe, places[i]);
		if (len > 0 && (size_t)len < cap && access(buf, R_OK) == 0)
			return true;
	}
	return false;
}

static enum cli_exit show_recording(struct cli_opts *o)
{
	char path[PATH_MAX];
	if (!find_recording(path, sizeof(path)))
		return cli_fail(CLI_CANNOT_TRACE,
				"cannot trace here, and demo.criticast is not installed beside "
				"this program: run make install, or start it from its source tree");
	fprintf(stderr,
		"criticast: cannot trace here: this is a recording of the demo, not live\n");
	o->replay = path;
	o->pid_cnt = 0;
	return top_run(o);
}

static enum cli_exit show_live(struct cli_opts *o)
{
	const struct demo_opts d = { .slot_ns = SHOW_SLOT };
	struct demo *demo;
	enum cli_exit code = demo_start(&d, &demo);
	if (code)
		return code;
	o->pids[0] = (uint32_t)atomic_load(&demo_log(demo)->server_pid);
	o->pid_cnt = 1;
	demo_go(demo);
	code = top_run(o);
	demo_stop(demo);
	return code;
}

/* For those who want to point another criticast, or another tool, at the server. */
static enum cli_exit serve(void)
{
	const struct demo_opts d = { .slot_ns = SHOW_SLOT };
	int stop_fd = stop_signal_open();
	if (stop_fd < 0)
		return cli_fail(CLI_FAILED, "cannot watch signals: %s", strerror(-stop_fd));
	struct demo *demo;
	enum cli_exit code = demo_start(&d, &demo);
	if (code) {
		close(stop_fd);
		return code;
	}
	const struct demo_shared *sh = demo_log(demo);
	printf("pid %d\n", atomic_load(&sh->server_pid));
	for (unsigned int i = 0; i < DEMO_CAUSE_CNT; i++)
		if (demo_cause_here(sh, i))
			printf("port %u %s: %s\n", sh->port[i], demo_cause_key(i),
			       demo_cause_title(i));
	code = cli_finish_stdout(CLI_OK);
	demo_go(demo);
	bool asked = false;
	while (!code && !(asked = stop_signal_came(stop_fd)) && demo_alive(demo))
		demo_sleep(CC_MS(50));
	if (!code && !asked)
		code = cli_fail(CLI_FAILED, "demo: a process of the demo has ended by itself");
	demo_stop(demo);
	close(stop_fd);
	return code;
}

int cmd_demo(int argc, char **argv)
{
	struct cli_opts o;
	enum cli_exit bad = cli_parse(CLI_DEMO, argc, argv, 0, 0, &o);
	if (bad || o.help_shown)
		return bad;
	if (o.serve)
		return serve();
	if (o.check)
		return demo_check(&o);
	enum cli_exit code = HAVE_BPF ? show_live(&o) : CLI_CANNOT_TRACE;
	return code == CLI_CANNOT_TRACE ? show_recording(&o) : code;
}
