/* SPDX-License-Identifier: Apache-2.0 */
#include "pick.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "picker.h"
#include "sanitize.h"
#include "tracing.h"

#if HAVE_BPF
#include "listen.h"
#include "probe.h"

static void read_user(uint32_t pid, char *buf, size_t cap)
{
	char path[64], names[1024];
	struct passwd pw, *found = NULL;
	struct stat st;
	snprintf(path, sizeof(path), "/proc/%u", pid);
	*buf = '\0';
	if (stat(path, &st))
		return;
	if (getpwuid_r(st.st_uid, &pw, names, sizeof(names), &found) || !found)
		snprintf(buf, cap, "%u", st.st_uid);
	else
		sanitize_text(pw.pw_name, strlen(pw.pw_name), buf, cap);
}

static void read_command(uint32_t pid, char *buf, size_t cap)
{
	char path[64], raw[512];
	snprintf(path, sizeof(path), "/proc/%u/cmdline", pid);
	*buf = '\0';
	FILE *f = fopen(path, "re");
	if (!f)
		return;
	size_t n = fread(raw, 1, sizeof(raw), f);
	fclose(f);
	while (n && !raw[n - 1]) /* a title that was set ends in many */
		n--;
	for (size_t i = 0; i < n; i++)
		if (!raw[i])
			raw[i] = ' ';
	sanitize_text(raw, n, buf, cap);
}

static bool same_server(const struct picker_server *s, const struct listen_server *l)
{
	return s->port == l->port && s->netns == l->netns;
}

static void add_process(struct picker_server *v, size_t *cnt, const struct listen_server *l)
{
	for (size_t i = 0; i < *cnt; i++)
		if (same_server(&v[i], l)) {
			v[i].more++;
			return;
		}
	struct picker_server *s = &v[(*cnt)++];
	*s = (struct picker_server){
		.port = l->port, .pid = l->pid, .conns = l->conns, .netns = l->netns
	};
	sanitize_text(l->comm, strlen(l->comm), s->comm, sizeof(s->comm));
	read_user(s->pid, s->user, sizeof(s->user));
	read_command(s->pid, s->command, sizeof(s->command));
}

static int by_port(const void *a, const void *b)
{
	const struct picker_server *x = a, *y = b;
	if (x->port != y->port)
		return x->port < y->port ? -1 : 1;
	return (x->netns > y->netns) - (x->netns < y->netns);
}

/* One row a port: parents come first, so that they speak for their children. */
static int list_servers(void *ctx, struct picker_server **ret, size_t *ret_cnt)
{
	struct listen_server *l = NULL;
	size_t cnt = 0, n = 0;
	(void)ctx;
	int err = listen_list(&l, &cnt, NULL);
	if (err)
		return err;
	struct picker_server *v = calloc(cnt + 1, sizeof(*v));
	for (int children = 0; v && children < 2; children++)
		for (size_t i = 0; i < cnt; i++)
			if ((l[i].parent != 0) == children)
				add_process(v, &n, &l[i]);
	free(l);
	if (!v)
		return -ENOMEM;
	qsort(v, n, sizeof(*v), by_port);
	*ret = v;
	*ret_cnt = n;
	return 0;
}

/* All processes of the server chosen, in its network namespace: they are the targets. */
static enum cli_exit take_server(struct cli_opts *o, const struct picker_server *s)
{
	struct listen_server *l = NULL;
	size_t cnt = 0;
	int err = listen_list(&l, &cnt, NULL);
	for (size_t i = 0; i < cnt; i++)
		if (same_server(s, &l[i]) && o->pid_cnt < CLI_LIST_MAX)
			o->pids[o->pid_cnt++] = l[i].pid;
	free(l);
	if (err)
		return cli_fail(CLI_FAILED, "/proc: %s", strerror(-err));
	return o->pid_cnt ? CLI_OK
			  : cli_fail(CLI_FAILED, "port %u: the server has just ended", s->port);
}

/* What is missing is said before a choice is asked for that cannot be followed. */
static enum cli_exit check_rights(void)
{
	struct loader_probe p[64];
	char missing[256] = "";
	const char *fix = NULL;
	uint32_t cnt = loader_probe(p, ARRAY_SIZE(p));
	for (uint32_t i = 0; i < CC_MIN(cnt, (uint32_t)ARRAY_SIZE(p)); i++)
		if (p[i].needed && p[i].state == LOADER_PROBE_NO) {
			size_t n = strlen(missing);
			snprintf(missing + n, sizeof(missing) - n, "%s%s", n ? ", " : "",
				 p[i].name);
			fix = fix ? fix : p[i].fix;
		}
	if (!fix)
		return CLI_OK;
	return cli_fail(
		CLI_CANNOT_TRACE,
		"cannot trace here: missing %s; %s. Replay needs no rights: top --replay FILE",
		missing, fix);
}

enum cli_exit pick_target(struct cli_opts *o, const struct config *cfg)
{
	struct picker_server s;
	if (cli_has_target(o) || o->replay || !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return CLI_OK;
	enum cli_exit bad = check_rights();
	if (bad)
		return bad;
	const struct picker_opts po = {
		.list = list_servers, .config = cfg, .theme = o->theme, .ascii = o->ascii
	};
	int err = picker_run(&po, &s);
	switch (-err) {
	case 0:
		return take_server(o, &s);
	case ECANCELED:
		return cli_fail(CLI_USAGE, "nothing to trace: no server was chosen");
	case EINVAL: /* a terminal that cannot show it */
		return CLI_OK;
	case EINTR:
	case EIO:
		return CLI_FAILED; /* ended from outside, or nobody is there to read a line */
	default:
		return cli_fail(CLI_FAILED, "the list of servers: %s", strerror(-err));
	}
}

static bool is_target(const struct snapshot *s, uint32_t pid)
{
	for (uint32_t i = 0; i < s->target_cnt; i++)
		if (s->targets[i].task.tgid == pid && !s->targets[i].followed)
			return true;
	return false;
}

void pick_ports(const struct snapshot *s, char *buf, size_t cap)
{
	struct listen_server *l = NULL;
	size_t cnt = 0, len = 0;
	uint16_t last = 0;
	*buf = '\0';
	if (listen_list(&l, &cnt, NULL))
		return;
	for (size_t i = 0; i < cnt; i++) { /* by port */
		char one[16];
		int n = snprintf(one, sizeof(one), "%s:%u", len ? ", " : "", l[i].port);
		if (l[i].port == last || !is_target(s, l[i].pid) || len + (size_t)n >= cap)
			continue;
		last = l[i].port;
		memcpy(buf + len, one, (size_t)n + 1);
		len += (size_t)n;
	}
	free(l);
}

#else /* built with BPF=0 */
void pick_ports(const struct snapshot *s, char *buf, size_t cap)
{
	(void)s;
	snprintf(buf, cap, "%s", "");
}

enum cli_exit pick_target(struct cli_opts *o, const struct config *cfg)
{
	(void)o;
	(void)cfg;
	return CLI_OK; /* what traces says that it cannot */
}

#endif
