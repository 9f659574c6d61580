/* SPDX-License-Identifier: Apache-2.0 */
#include "follow.h"

#include "stream.h"
#include "targets.h"

#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#define WANTED_MAX 64      /* found in one interval; more are met again in the next */
#define JOIN_NS CC_MS(100) /* at most this often between refreshes */
#define WAKES_MIN 2        /* one wake may be chance: a shell, a debugger */

struct wanted {
	uint32_t tgid; /* of who wakes; 0: who listens on port */
	uint32_t port;
	uint32_t by;      /* thread of the target that waits or calls */
	uint32_t by_tgid; /* 0: not known yet */
	uint32_t cnt;
	bool seen; /* it has joined, or may not */
};

struct follow_side {
	struct wanted v[WANTED_MAX];
	size_t cnt;
	uint32_t asked[WANTED_MAX]; /* ports that were looked up, so as not to read /proc again */
	size_t asked_cnt;
	size_t joined, told; /* processes followed, without their children */
	uint32_t who[FOLLOW_MAX];
	bool full_told, full;
	cc_ns joined_at;
	struct ifaddrs *local;
};

static struct follow_side *side(struct loader *l)
{
	if (!l->follow && (l->follow = calloc(1, sizeof(*l->follow))))
		getifaddrs(&l->follow->local); /* without it: the loopback addresses only */
	return l->follow;
}

static bool is_local(const struct follow_side *f, const struct cc_addr *a)
{
	static const uint8_t loopback6[16] = { [15] = 1 };
	if (a->family == AF_INET && a->ip[0] == 127)
		return true;
	if (a->family == AF_INET6 && !memcmp(a->ip, loopback6, sizeof(loopback6)))
		return true;
	for (const struct ifaddrs *i = f->local; i; i = i->ifa_next) {
		if (!i->ifa_addr || i->ifa_addr->sa_family != a->family)
			continue;
		if (a->family == AF_INET &&
		    !memcmp(&((const struct sockaddr_in *)(const void *)i->ifa_addr)->sin_addr,
			    a->ip, 4))
			return true;
		if (a->family == AF_INET6 &&
		    !memcmp(&((const struct sockaddr_in6 *)(const void *)i->ifa_addr)->sin6_addr,
			    a->ip, 16))
			return true;
	}
	return false;
}

static void want(struct follow_side *f, const struct wanted *w)
{
	for (size_t i = 0; i < f->cnt; i++)
		if (f->v[i].tgid == w->tgid && f->v[i].port == w->port) {
			f->v[i].cnt++;
			return;
		}
	if (f->cnt < WANTED_MAX)
		f->v[f->cnt++] = *w;
}

static void see_episode(struct loader *l, const struct cc_rec_episode *ep)
{
	uint32_t context = (ep->h.flags & CC_EP_CTX_MASK) >> CC_EP_CTX_SHIFT;
	if (!ep->waker_tgid || ep->wake - ep->out < l->o.stack_min_ns ||
	    (context != CC_CTX_TASK && context != CC_CTX_KTHREAD) ||
	    targets_find(l, ep->waker_tgid))
		return;
	want(l->follow, &(struct wanted){ .tgid = ep->waker_tgid, .by = ep->tid, .cnt = 1 });
}

static void see_sockop(struct loader *l, const struct cc_rec_sockop *s)
{
	struct follow_side *f = l->follow;
	if (!(s->h.flags & CC_SO_UPSTREAM) ||
	    (s->h.aux != CC_OP_SEND && s->h.aux != CC_OP_CONNECT) || !s->peer.port)
		return;
	for (size_t i = 0; i < f->asked_cnt; i++)
		if (f->asked[i] == s->peer.port)
			return;
	if (is_local(f, &s->peer))
		want(f, &(struct wanted){ .port = s->peer.port,
					  .by = s->tid,
					  .by_tgid = s->tgid,
					  .cnt = WAKES_MIN });
}

int follow_record(struct loader *l, const struct cc_rec *rec, size_t len)
{
	if (!l->o.follow)
		return 0;
	if (!side(l))
		return -ENOMEM;
	if (rec->kind == CC_REC_EPISODE && len >= sizeof(struct cc_rec_episode))
		see_episode(l, (const struct cc_rec_episode *)rec);
	else if (rec->kind == CC_REC_SOCKOP && len >= sizeof(struct cc_rec_sockop))
		see_sockop(l, (const struct cc_rec_sockop *)rec);
	return 0;
}

void follow_forget(struct loader *l)
{
	if (l->follow)
		l->follow->cnt = 0;
}

/* Process @tgid joins, one hop further than @by. 1: it did. */
static int join_one(struct loader *l, uint32_t tgid, const struct loader_target *by)
{
	struct follow_side *f = l->follow;
	const struct loader_target t = {
		.tgid = tgid, .parent = by->tgid, .flags = CC_TF_FOLLOWED, .hop = by->hop + 1
	};
	char comm[CC_COMM_LEN];
	if (targets_find(l, tgid) || targets_is_self(tgid))
		return 0;
	stream_read_comm(tgid, comm);
	if (!strncmp(comm, "kworker/", 8)) /* it does anybody's work, a moment each */
		return 0;
	if (f->joined == FOLLOW_MAX) {
		f->full = true;
		return 0;
	}
	int err = loader_target_add(l, &t);
	if (err)
		return err == -ENOMEM ? err : 0; /* it is gone, or there is no room */
	f->who[f->joined++] = tgid;
	return 1;
}

static int join_listeners(struct loader *l, const struct wanted *w, const struct loader_target *by)
{
	struct follow_side *f = l->follow;
	const struct loader_target caller = *by; /* the table may move */
	uint32_t *pids = NULL;
	size_t cnt = 0;
	if (f->asked_cnt < WANTED_MAX)
		f->asked[f->asked_cnt++] = w->port;
	int ret = sock_find_ports(&w->port, 1, NULL, &pids, &cnt);
	if (ret)
		return ret == -ENOMEM ? ret : 0; /* nobody there that we may see */
	for (size_t i = 0; i < cnt && ret >= 0; i++)
		ret = join_one(l, pids[i], &caller);
	free(pids);
	return ret < 0 ? ret : 0;
}

bool follow_waits(const struct loader *l)
{
	const struct follow_side *f = l->follow;
	if (!f || f->joined == FOLLOW_MAX || loader_now() - f->joined_at < JOIN_NS)
		return false;
	for (size_t i = 0; i < f->cnt; i++)
		if (f->v[i].cnt >= WAKES_MIN && !f->v[i].seen)
			return true;
	return false;
}

int follow_join(struct loader *l)
{
	struct follow_side *f = l->follow;
	size_t before = l->target_cnt;
	int ret = 0;
	if (!f)
		return 0;
	f->joined_at = loader_now();
	for (size_t i = 0; i < f->cnt && ret >= 0; i++) {
		struct wanted *w = &f->v[i];
		if (w->cnt < WAKES_MIN || w->seen)
			continue;
		w->seen = true;
		uint32_t tgid = w->by_tgid ? w->by_tgid : targets_tgid_of(w->by);
		const struct loader_target *by = tgid ? targets_find(l, tgid) : NULL;
		if (!by || by->hop >= l->o.follow)
			continue;
		const struct loader_target caller = *by;
		ret = w->tgid ? join_one(l, w->tgid, &caller) : join_listeners(l, w, &caller);
	}
	if (ret >= 0 && l->target_cnt > before)
		ret = targets_add_children(l);
	return ret < 0 ? ret : (int)(l->target_cnt - before);
}

int follow_tell(struct loader *l, cc_record_fn *fn, void *ctx)
{
	struct follow_side *f = l->follow;
	char text[128];
	int ret = 0;
	for (; f && ret >= 0 && f->told < f->joined; f->told++) {
		const struct loader_target *t = targets_find(l, f->who[f->told]);
		char comm[CC_COMM_LEN];
		if (!t)
			continue;
		stream_read_comm(t->tgid, comm);
		snprintf(text, sizeof(text),
			 "follow: pid %u %.*s, %u hop%s from a target: explains, no rows", t->tgid,
			 CC_COMM_LEN, comm, t->hop, t->hop == 1 ? "" : "s");
		ret = stream_note(text, fn, ctx);
	}
	if (ret >= 0 && f && f->full && !f->full_told) {
		snprintf(text, sizeof(text),
			 "follow: %d processes are followed; others are only named", FOLLOW_MAX);
		f->full_told = true;
		ret = stream_note(text, fn, ctx);
	}
	return ret < 0 ? ret : 0;
}

void follow_done(struct loader *l)
{
	if (l->follow && l->follow->local)
		freeifaddrs(l->follow->local);
	free(l->follow);
	l->follow = NULL;
}
