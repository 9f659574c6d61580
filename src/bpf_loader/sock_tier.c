// SPDX-License-Identifier: Apache-2.0
/* Which of the socket programs this kernel takes: the best tier, or the one asked for. */
#include "refused.h"
#include "sock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "../../bpf/sock_walk.h"

#include "criticast.skel.h"

#define ADDR_MAX 16384 /* sockets known by address; an LRU map has all of them at once */

_Static_assert((int)LOADER_REQ_SOCK == CC_BPF_REQ_SOCK && (int)LOADER_REQ_SEQ == CC_BPF_REQ_SEQ &&
		       (int)LOADER_REQ_CALLS == CC_BPF_REQ_CALLS &&
		       (int)LOADER_REQ_SEQ_FN == CC_BPF_REQ_SEQ_FN,
	       "the same tiers");

const char *loader_req_tier_name(enum loader_req_tier t)
{
	static const char *const names[] = {
		[LOADER_REQ_SOCK] = "tier 1, socket lengths",
		[LOADER_REQ_SEQ] = "tier 2, sequence numbers: TCP only, no arrivals",
		[LOADER_REQ_CALLS] = "tier 3, system calls: no io_uring, no arrivals; dear",
		[LOADER_REQ_SEQ_FN] = "tier 2b, as 2 at function ends",
		[LOADER_REQ_NONE] = "none: waits only",
	};
	return t < ARRAY_SIZE(names) && names[t] ? names[t] : "?";
}

struct sock_prog {
	struct bpf_program *prog;
	const char *need; /* a type of the kernel's BTF without which it cannot load */
};

/* A way to see operations on sockets, the best first. */
struct sock_tier {
	enum loader_req_tier tier;
	struct sock_prog progs[SOCK_PROGS_MAX];
};

#define TIERS 4

static void sock_tiers(const struct loader *l, struct sock_tier ret[TIERS])
{
	const struct criticast *s = l->skel;
	const struct sock_tier t[TIERS] = {
		{ LOADER_REQ_SOCK,
		  { { s->progs.cc_sk_data_ready, "btf_trace_sk_data_ready" },
		    { s->progs.cc_sock_recv_length, "btf_trace_sock_recv_length" },
		    { s->progs.cc_sock_send_length, "btf_trace_sock_send_length" } } },
		{ LOADER_REQ_SEQ,
		  { { s->progs.cc_tcp_rcv_space_adjust, "btf_trace_tcp_rcv_space_adjust" },
		    { s->progs.cc_net_dev_queue, "btf_trace_net_dev_queue" } } },
		{ LOADER_REQ_SEQ_FN,
		  { { s->progs.cc_tcp_recvmsg, "tcp_recvmsg" },
		    { s->progs.cc_tcp_sendmsg, "tcp_sendmsg" } } },
		{ LOADER_REQ_CALLS, { { s->progs.cc_sys_exit, "btf_trace_sys_exit" } } },
	};

	memcpy(ret, t, sizeof(t));
}

/* What all tiers need: connections, and the walk over open files. */
static void sock_common(const struct loader *l, struct sock_prog ret[2])
{
	ret[0] = (struct sock_prog){ l->skel->progs.cc_inet_sock_set_state,
				     "btf_trace_inet_sock_set_state" };
	ret[1] = (struct sock_prog){ l->skel->progs.cc_sock_walk, "bpf_iter__task_file" };
}

/* What this kernel lacks of what the programs need; NULL: nothing. */
static const char *missing(const struct btf *btf, const struct sock_prog *p, size_t cnt)
{
	if (!btf)
		return "BTF";
	for (size_t i = 0; i < cnt && p[i].prog; i++)
		if (btf__find_by_name(btf, p[i].need) < 0)
			return p[i].need;
	return NULL;
}

/* The tier asked for, or the best one that this kernel has all of; NULL: none, *lack is missing.
 * 2b is taken only when asked for: it was never tried. */
static const struct sock_tier *choose(const struct loader *l, const struct sock_tier t[TIERS],
				      const char **lack)
{
	struct btf *btf = btf__load_vmlinux_btf();
	const struct sock_tier *best = NULL;
	struct sock_prog common[2];

	sock_common(l, common);
	for (size_t i = 0; i < TIERS && !best; i++) {
		bool itself = l->o.req_tier == LOADER_REQ_AUTO && t[i].tier != LOADER_REQ_SEQ_FN &&
			      !(l->req_refused >> t[i].tier & 1);

		if (!itself && l->o.req_tier != t[i].tier)
			continue;
		*lack = missing(btf, common, ARRAY_SIZE(common));
		if (!*lack)
			*lack = missing(btf, t[i].progs, SOCK_PROGS_MAX);
		if (!*lack)
			best = &t[i];
	}
	btf__free(btf);
	return best;
}

static void switch_off(const struct loader *l, const struct sock_tier t[TIERS],
		       const struct sock_tier *but)
{
	struct sock_prog common[2];

	for (size_t i = 0; i < TIERS; i++)
		for (size_t p = 0; p < SOCK_PROGS_MAX && t[i].progs[p].prog; p++)
			if (&t[i] != but)
				bpf_program__set_autoload(t[i].progs[p].prog, false);
	if (but)
		return;
	sock_common(l, common);
	for (size_t p = 0; p < ARRAY_SIZE(common); p++)
		bpf_program__set_autoload(common[p].prog, false);
	bpf_map__set_autocreate(l->skel->maps.socks, false);
	bpf_map__set_autocreate(l->skel->maps.sock_tasks, false);
}

static bool is_one_of(const struct sock_prog *p, size_t cnt, const char *name)
{
	for (size_t i = 0; i < cnt && p[i].prog; i++)
		if (!strcmp(bpf_program__name(p[i].prog), name))
			return true;
	return false;
}

bool sock_refused(struct loader *l, const char *prog, int res, struct cc_err *err)
{
	struct sock_prog common[2];
	struct sock_tier t[TIERS];
	uint32_t gone = 0;

	sock_tiers(l, t);
	sock_common(l, common);
	if (l->req_tier == LOADER_REQ_NONE)
		return false;
	for (size_t i = 0; i < TIERS; i++)
		if (t[i].tier == l->req_tier && is_one_of(t[i].progs, SOCK_PROGS_MAX, prog))
			gone = 1u << t[i].tier;
	if (is_one_of(common, ARRAY_SIZE(common), prog))
		gone = UINT32_MAX;
	if (!gone)
		return false;
	if (l->o.req_tier != LOADER_REQ_AUTO) {
		loader_err(err,
			   "requests: this kernel refuses %s (%s); --req-tier auto takes what it "
			   "has",
			   prog, strerror(-res));
		return false;
	}
	l->req_refused |= gone;
	if (!l->req_why[0])
		snprintf(l->req_why, sizeof(l->req_why), "this kernel refuses %s: %s", prog,
			 strerror(-res));
	return true;
}

int sock_prepare(struct loader *l, struct cc_err *err)
{
	const struct sock_tier *t = NULL;
	const char *lack = NULL;
	struct sock_tier tiers[TIERS];
	struct timespec jiffy;

	sock_tiers(l, tiers);
	if (l->o.req_tier != LOADER_REQ_NONE)
		t = choose(l, tiers, &lack);
	if (!t && l->o.req_tier != LOADER_REQ_NONE && l->o.req_tier != LOADER_REQ_AUTO) {
		loader_err(err, "requests: this kernel has no %s; see `criticast env`", lack);
		return -EOPNOTSUPP;
	}
	l->req_tier = t ? t->tier : LOADER_REQ_NONE;
	switch_off(l, tiers, t);
	if (!t)
		return 0;
	/* the coarse clock's step is the jiffy */
	if (clock_getres(CLOCK_MONOTONIC_COARSE, &jiffy))
		return -errno;
	l->skel->bss->sock_jiffy_ns = (cc_ns)jiffy.tv_nsec;
	if (l->req_tier == LOADER_REQ_CALLS) {
		int res = bpf_map__set_max_entries(l->skel->maps.socks_by_addr, ADDR_MAX);

		if (res)
			return res;
	}
	l->sock = calloc(1, sizeof(*l->sock));
	return l->sock ? 0 : -ENOMEM;
}

static int attach_one(struct loader *l, struct bpf_program *prog, const char **ret_refused)
{
	struct bpf_link *link = refused_attach(prog);

	if (!link) {
		*ret_refused = bpf_program__name(prog);
		return -errno;
	}
	l->sock->links[l->sock->link_cnt++] = link;
	return 0;
}

int sock_attach(struct loader *l, const char **ret_refused)
{
	struct sock_tier t[TIERS];
	int res = 0;

	if (!l->sock)
		return 0;
	sock_tiers(l, t);
	for (size_t i = 0; i < TIERS; i++)
		for (size_t p = 0; p < SOCK_PROGS_MAX && t[i].progs[p].prog && !res; p++)
			if (t[i].tier == l->req_tier)
				res = attach_one(l, t[i].progs[p].prog, ret_refused);
	return res ? res : attach_one(l, l->skel->progs.cc_inet_sock_set_state, ret_refused);
}

int sock_start(struct loader *l)
{
	int res;

	if (!l->sock)
		return 0;
	/* The first event of a connection decides which end it is: it must find who listens. */
	res = sock_walk(l, SOCK_WALK_LISTENERS, NULL, NULL);
	l->skel->bss->sock_on = !res;
	return res;
}

void sock_done(struct loader *l)
{
	if (!l->sock)
		return;
	for (size_t i = 0; i < l->sock->link_cnt; i++)
		bpf_link__destroy(l->sock->links[i]);
	free(l->sock);
	l->sock = NULL;
}
