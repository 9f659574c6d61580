// SPDX-License-Identifier: Apache-2.0
/* req_probe: prints the request side of the live stream as lines of key=value, for the scripts
 *here.
 *
 *	req_probe [--interval MS] [--req-tier N] [--pid N].. [--port N]..
 *
 * Prints READY when tracing, then records until SIGINT or SIGTERM, then COUNTER lines and END. */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader.h"

#define TARGETS_MAX 64

static volatile sig_atomic_t stopping;

static void on_signal(int sig)
{
	(void)sig;
	stopping = 1;
}

static void addr_str(const struct cc_addr *a, char buf[80])
{
	char ip[INET6_ADDRSTRLEN] = "-";
	uint64_t ino;

	memcpy(&ino, a->ip, sizeof(ino));
	if (a->family == AF_INET || a->family == AF_INET6)
		inet_ntop(a->family, a->ip, ip, sizeof(ip));
	if (a->family == AF_UNIX)
		snprintf(buf, 80, "unix:%" PRIu64, ino);
	else
		snprintf(buf, 80, "%s:%u", ip, a->port);
}

static void print_req(const char *word, const struct cc_rec_req *r)
{
	char peer[80], up[80];

	addr_str(&r->peer, peer);
	addr_str(&r->up_peer, up);
	printf("%s cookie=%llu ordinal=%u end=%u what=%u told=%llu arrival=%llu first_recv=%llu "
	       "last_recv=%llu first_send=%llu last_send=%llu bytes_in=%llu bytes_out=%llu "
	       "recv_cnt=%u send_cnt=%u eagain_cnt=%u eagain_ns=%llu recv_tid=%u send_tid=%u "
	       "tgid=%u local_port=%u peer=%s up_cookie=%llu up_votes=%u up_calls=%u up_peer=%s "
	       "netns=%llu comm=%.16s\n",
	       word, r->cookie, r->ordinal, r->h.aux, r->what, r->h.ts, r->arrival, r->first_recv,
	       r->last_recv, r->first_send, r->last_send, r->bytes_in, r->bytes_out, r->recv_cnt,
	       r->send_cnt, r->eagain_cnt, r->eagain_ns, r->recv_tid, r->send_tid, r->tgid,
	       r->local_port, peer, r->up_cookie, r->up_votes, r->up_calls, up, r->netns, r->comm);
}

static void print_sockop(const struct cc_rec_sockop *r)
{
	char peer[80];

	addr_str(&r->peer, peer);
	printf("SOCKOP op=%u flags=%u ts=%llu cookie=%llu ordinal=%u tid=%u tgid=%u bytes=%llu "
	       "link_cookie=%llu link_ordinal=%u local_port=%u peer=%s\n",
	       r->h.aux, r->h.flags, r->h.ts, r->cookie, r->ordinal, r->tid, r->tgid, r->bytes,
	       r->link_cookie, r->link_ordinal, r->local_port, peer);
}

static int print_rec(void *ctx, const struct cc_rec *rec, size_t len)
{
	const struct cc_rec_counter *c = (const void *)rec;
	const struct cc_rec_listen *l = (const void *)rec;
	const struct cc_rec_target *t = (const void *)rec;
	const struct cc_rec_loss *loss = (const void *)rec;

	(void)ctx;
	(void)len;
	switch (rec->kind) {
	case CC_REC_REQ:
		print_req("REQ", (const void *)rec);
		break;
	case CC_REC_OPEN_REQ:
		print_req("OPEN_REQ", (const void *)rec);
		break;
	case CC_REC_SOCKOP:
		print_sockop((const void *)rec);
		break;
	case CC_REC_LISTEN:
		printf("LISTEN on=%u cookie=%llu tgid=%u port=%u family=%u netns=%llu\n", rec->aux,
		       l->cookie, l->tgid, l->port, l->family, l->netns);
		break;
	case CC_REC_TARGET:
		printf("TARGET tgid=%u parent=%u comm=%.16s\n", t->tgid, t->parent, t->comm);
		break;
	case CC_REC_COUNTER:
		printf("COUNTER id=%u value=%llu\n", rec->aux, c->value);
		break;
	case CC_REC_LOSS:
		printf("LOSS of=%u cnt=%llu\n", rec->aux, loss->cnt);
		break;
	case CC_REC_TICK:
		fflush(stdout); /* a script may look on */
		break;
	default:
		break;
	}
	return 0;
}

static int parse(int argc, char **argv, uint32_t pids[TARGETS_MAX], uint32_t ports[TARGETS_MAX],
		 struct loader_opts *o)
{
	for (int i = 1; i + 1 < argc; i += 2) {
		uint32_t n = (uint32_t)strtoul(argv[i + 1], NULL, 10);

		if (!strcmp(argv[i], "--pid") && o->pid_cnt < TARGETS_MAX)
			pids[o->pid_cnt++] = n;
		else if (!strcmp(argv[i], "--port") && o->port_cnt < TARGETS_MAX)
			ports[o->port_cnt++] = n;
		else if (!strcmp(argv[i], "--interval"))
			o->interval_ns = CC_MS(n);
		else if (!strcmp(argv[i], "--req-tier"))
			o->req_tier = (enum loader_req_tier)n;
		else
			return -EINVAL;
	}
	return o->pid_cnt + o->port_cnt ? 0 : -EINVAL;
}

static int run(struct cc_source *s)
{
	int n = 0;

	printf("READY\n");
	fflush(stdout);
	while (!stopping && n >= 0)
		n = s->ops->poll(s, 20, print_rec, NULL);
	if (n >= 0 || n == -ENODATA)
		n = s->ops->stop(s, print_rec, NULL);
	printf("END %d\n", n < 0 ? n : 0);
	return n < 0;
}

int main(int argc, char **argv)
{
	uint32_t pids[TARGETS_MAX], ports[TARGETS_MAX];
	struct loader_opts o = { .pids = pids, .ports = ports };
	struct cc_err err = { 0 };
	struct cc_source *s;
	int res;

	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	if (parse(argc, argv, pids, ports, &o)) {
		fprintf(stderr, "usage: req_probe [--interval MS] [--req-tier N] [--pid N].. "
				"[--port N]..\n");
		return 2;
	}
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	res = loader_source_new(&o, &err, &s);
	if (res) {
		fprintf(stderr, "req_probe: %s\n", err.msg[0] ? err.msg : strerror(-res));
		return res == -EPERM || res == -EOPNOTSUPP ? 3 : 1;
	}
	res = run(s);
	cc_source_free(s);
	return res;
}
