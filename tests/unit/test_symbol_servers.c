/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks of real, stripped servers: complete, and as libunwind has them. */
#include "symbol_util.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 20

struct tally {
	unsigned int stacks, full, same, frames, no_rule;
	uint64_t ns;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return CC_S(t.tv_sec) + (uint64_t)t.tv_nsec;
}

static bool is_open(uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons(port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool ok = fd >= 0 && !connect(fd, (struct sockaddr *)&a, sizeof(a));

	close(fd);
	return ok;
}

/* A port nobody listens on just now. */
static uint16_t free_port(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	cr_assert_eq(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	close(fd);
	return ntohs(a.sin_port);
}

static pid_t start_server(const char *const argv[], uint16_t port)
{
	pid_t pid = fork();

	if (!pid) {
		int null = open("/dev/null", O_RDWR);

		prctl(PR_SET_PDEATHSIG, SIGTERM);
		dup2(null, 0);
		dup2(null, 1);
		dup2(null, 2);
		execv(argv[0], (char *const *)argv);
		_exit(127);
	}
	for (int i = 0; i < 5000 && !is_open(port); i++)
		usleep(1000);
	cr_assert(is_open(port), "%s does not listen", argv[0]);
	return pid;
}

static void tally_thread(struct tally *t, pid_t tgid, pid_t tid, struct maps *m,
			 struct unwinder *rows, struct unwinder *judge, struct cc_rec_snap *s)
{
	struct unwind_out o, j;
	struct unwind_in in;
	uint64_t begin;

	if (snap_take(tgid, tid, 8192, s))
		return; /* it has just ended */
	snap_release(tid);
	unwind_in_from_snap(s, &in);
	judge->ops->unwind(judge, m, &in, &j);
	rows->ops->unwind(rows, m, &in, &o);
	in.learn = true;
	rows->ops->unwind(rows, m, &in, &o);
	t->no_rule += expect_rules(s, &o) > 0;
	in.learn = false;
	begin = now_ns();
	for (int i = 0; i < 100; i++)
		rows->ops->unwind(rows, m, &in, &o);
	t->ns += (now_ns() - begin) / 100;
	t->stacks++;
	t->frames += o.cnt;
	t->full += o.end == UNWIND_START && !o.guessed;
	/* libunwind gives up at a thread that was just made */
	t->same += (o.cnt == j.cnt || (j.end != UNWIND_START && o.cnt > j.cnt)) &&
		   !memcmp(o.ip, j.ip, j.cnt * sizeof(o.ip[0]));
}

static void tally_process(struct tally *t, pid_t tgid)
{
	struct file_cache *files;
	struct unwinder *rows, *judge;
	struct maps m;
	pid_t tids[64];
	bool changed;
	struct cc_rec_snap *s = malloc(SNAP_BUF_BYTES);

	cr_assert_eq(file_cache_new(&files), 0);
	cr_assert_eq(unwind_rows_new(files, &rows), 0);
	cr_assert_eq(unwind_libunwind_new(files, &judge), 0);
	maps_init(&m, (uint32_t)tgid);
	cr_assert_eq(maps_refresh(&m, &changed), 0);
	for (int round = 0; round < ROUNDS; round++) {
		size_t cnt = thread_list(tgid, tids, 64);

		for (size_t i = 0; i < cnt; i++)
			tally_thread(t, tgid, tids[i], &m, rows, judge, s);
		usleep(3000);
	}
	maps_done(&m);
	unwinder_free(rows);
	unwinder_free(judge);
	file_cache_free(files);
	free(s);
}

static void expect_good(const char *name, const struct tally *t)
{
	cr_assert_gt(t->stacks, 0);
	cr_log_info(
		"%s: %u stacks, %.2f %% complete, %.2f %% as libunwind, %.1f frames, %u ns each",
		name, t->stacks, 100.0 * t->full / t->stacks, 100.0 * t->same / t->stacks,
		(double)t->frames / t->stacks, (unsigned int)(t->ns / t->stacks));
	cr_expect_geq(t->full * 1000, t->stacks * 995);
	cr_expect_geq(t->same * 1000, t->stacks * 995);
	/* but for threads that have not run yet */
	cr_expect_leq(t->no_rule * 100, t->stacks * 3, "the kernel's rules can say %u of %u",
		      t->stacks - t->no_rule, t->stacks);
}

static void stop_server(pid_t pid)
{
	kill(pid, SIGTERM);
	waitpid(pid, NULL, 0);
}

Test(symbol_servers, redis, .timeout = 60)
{
	char port[8];
	uint16_t p = free_port();
	struct tally t = { 0 };
	pid_t pid;

	if (access("/usr/bin/redis-server", X_OK))
		cr_skip_test("no redis-server: its stacks are not checked");
	snprintf(port, sizeof(port), "%u", p);
	pid = start_server((const char *[]){ "/usr/bin/redis-server", "--port", port, "--save", "",
					     "--dir", "/tmp", NULL },
			   p);
	tally_process(&t, pid);
	stop_server(pid);
	expect_good("redis", &t);
}

Test(symbol_servers, memcached, .timeout = 60)
{
	char port[8];
	uint16_t p = free_port();
	struct tally t = { 0 };
	pid_t pid;

	if (access("/usr/bin/memcached", X_OK))
		cr_skip_test("no memcached: its stacks are not checked");
	snprintf(port, sizeof(port), "%u", p);
	pid = start_server((const char *[]){ "/usr/bin/memcached", "-u", "root", "-l", "127.0.0.1",
					     "-p", port, NULL },
			   p);
	tally_process(&t, pid);
	stop_server(pid);
	expect_good("memcached", &t);
}

Test(symbol_servers, nginx, .timeout = 60)
{
	char dir[] = "/tmp/cc_nginx_XXXXXX", conf[64], text[512];
	uint16_t p = free_port();
	struct tally t = { 0 };
	FILE *f;
	pid_t pid;

	if (access("/usr/sbin/nginx", X_OK))
		cr_skip_test("no nginx: its stacks are not checked");
	cr_assert_not_null(mkdtemp(dir));
	snprintf(conf, sizeof(conf), "%s/nginx.conf", dir);
	snprintf(text, sizeof(text),
		 "daemon off; master_process off; pid %s/pid; error_log /dev/null;\n"
		 "events { }\nhttp { access_log off; client_body_temp_path %s/b; proxy_temp_path "
		 "%s/p;\nfastcgi_temp_path %s/f; uwsgi_temp_path %s/u; scgi_temp_path %s/s;\n"
		 "server { listen 127.0.0.1:%u; } }\n",
		 dir, dir, dir, dir, dir, dir, p);
	f = fopen(conf, "w");
	fputs(text, f);
	fclose(f);
	pid = start_server((const char *[]){ "/usr/sbin/nginx", "-p", dir, "-c", conf, NULL }, p);
	tally_process(&t, pid);
	stop_server(pid);
	snprintf(text, sizeof(text), "rm -rf %s", dir);
	cr_expect_eq(system(text), 0);
	expect_good("nginx", &t);
}
