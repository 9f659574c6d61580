/* SPDX-License-Identifier: Apache-2.0 */
/* What the engine knows, for who asks. */
#include <string.h>

#include "engine_priv.h"
#include "fmt.h"

const struct engine_stats *engine_stats(const struct engine *e) { return &e->stats; }

const struct cc_request *const *engine_requests(const struct engine *e, size_t *ret_cnt)
{
	*ret_cnt = e->sorted.cnt;
	return e->sorted.p;
}

const struct cc_request *engine_request(const struct engine *e, struct cc_reqid id)
{
	const struct req *r = requests_find(&e->reqs, id);

	return r && (r->told || r->open) ? &r->pub : NULL;
}

bool engine_conn(const struct engine *e, uint64_t cookie, struct engine_conn *ret)
{
	const struct sock *s = requests_sock(&e->reqs, cookie);

	if (s)
		*ret = (struct engine_conn){ s->local_port, s->tid };
	return s != NULL;
}

const struct latencies *engine_latencies(const struct engine *e) { return &e->reqs.lat; }

const struct req_untimed *engine_untimed(const struct engine *e, size_t *ret_cnt)
{
	*ret_cnt = e->reqs.untimed.cnt;
	return e->reqs.untimed.p;
}

static void tell_task(const struct engine *e, const struct task *t, struct engine_task *ret)
{
	const struct go_state *g = task_is_go(t) ? task_go(&e->tasks, t) : NULL;

	*ret = (struct engine_task){
		.tid = t->tid,
		.tgid = t->tgid,
		.start = t->start,
		.born = t->born == CC_NEVER ? 0 : t->born,
		.dead = t->dead == CC_NEVER ? 0 : t->dead,
		.comm = t->comm,
		.flags = t->flags,
	};
	if (g) {
		ret->goid = g->goid;
		ret->start_pc = g->start_pc;
		ret->last_thread = g->last_thread;
	}
}

bool engine_task(const struct engine *e, uint32_t tid, cc_ns at, struct engine_task *ret)
{
	const struct task *t = tasks_find(&e->tasks, tid, at ? at : CC_NEVER);

	if (t)
		tell_task(e, t, ret);
	return t != NULL;
}

bool engine_task_at(const struct engine *e, size_t i, struct engine_task *ret)
{
	if (i >= e->tasks.v.cnt)
		return false;
	tell_task(e, &e->tasks.v.p[i], ret);
	return true;
}

bool engine_go_served(struct engine *e, uint32_t tgid, uint64_t goid, cc_ns at,
		      enum engine_serve mode, struct engine_served *ret)
{
	const struct task *t = go_find(&e->tasks, tgid, goid);
	struct served s = { 0 };

	if (t)
		go_serving_by(e, t, at, mode, &s);
	*ret = (struct engine_served){ s.id, s.evidence, s.ambiguous };
	return s.id.kind != CC_REQID_NONE;
}

bool engine_stack(const struct engine *e, uint64_t key, struct engine_stack *ret)
{
	return names_get_stack(&e->names, key, ret);
}

bool engine_frame(const struct engine *e, uint32_t tgid, uint32_t gen, uint64_t ip,
		  struct engine_frame *ret)
{
	return names_get_frame(&e->names, tgid, gen, ip, ret);
}

bool engine_mapping(const struct engine *e, uint32_t mapping, struct engine_mapping *ret)
{
	return names_get_mapping(&e->names, mapping, ret);
}

static const char *fd_word(unsigned int kind)
{
	static const char *const words[] = {
		[CC_FD_FILE] = "file",         [CC_FD_DIR] = "directory",
		[CC_FD_CHAR] = "device",       [CC_FD_BLOCK] = "block device",
		[CC_FD_PIPE] = "pipe",         [CC_FD_SOCK_TCP] = "tcp",
		[CC_FD_SOCK_UDP] = "udp",      [CC_FD_SOCK_UNIX] = "unix",
		[CC_FD_SOCK_OTHER] = "socket", [CC_FD_EPOLL] = "epoll",
		[CC_FD_EVENTFD] = "eventfd",   [CC_FD_TIMERFD] = "timer",
		[CC_FD_SIGNALFD] = "signals",  [CC_FD_INOTIFY] = "inotify",
		[CC_FD_IO_URING] = "io_uring",
	};

	return kind < ARRAY_SIZE(words) && words[kind] ? words[kind] : "";
}

static size_t socket_name(const struct engine *e, uint64_t cookie, char *buf, size_t cap)
{
	const struct sock *s = requests_sock(&e->reqs, cookie);
	size_t len = names_text(&e->names, CC_NAME_SOCK, cookie, 0, 0, buf, cap);

	if (!len && s)
		len = fmt_addr(buf, cap, &s->peer);
	return len ? len : fmt_text(buf, cap, "socket %llx", (unsigned long long)cookie);
}

static size_t futex_name(const struct engine *e, const struct resource *r, char *buf, size_t cap)
{
	if (r->uaddr) {
		size_t len = names_text(&e->names, CC_NAME_ADDR, r->uaddr, 0, r->tgid, buf, cap);
		return len ? len : fmt_text(buf, cap, "0x%llx", (unsigned long long)r->uaddr);
	}
	return fmt_text(buf, cap, "..%08llx", (unsigned long long)r->id);
}

size_t engine_resource_name(const struct engine *e, uint32_t resource, char *buf, size_t cap)
{
	const struct resource *r;
	const char *word;
	size_t len;

	if (!resource || resource > e->res.v.cnt)
		return fmt_text(buf, cap, "%s", "");
	r = &e->res.v.p[resource - 1];
	switch ((enum res_kind)r->kind) {
	case RES_NONE:
	case RES_SHARED: /* what waits on it is told by its process' own address */
		break;
	case RES_FUTEX:
		return futex_name(e, r, buf, cap);
	case RES_KLOCK:
		len = names_text(&e->names, CC_NAME_ADDR, r->id, 0, 0, buf, cap);
		return len ? len : fmt_text(buf, cap, "kernel 0x%llx", (unsigned long long)r->id);
	case RES_FILE:
		len = names_text(&e->names, CC_NAME_FILE, r->id, r->id2, 0, buf, cap);
		return len ? len : fmt_text(buf, cap, "inode %llu", (unsigned long long)r->id);
	case RES_SOCK:
		return socket_name(e, r->id, buf, cap);
	case RES_GO:
		len = names_text(&e->names, CC_NAME_ADDR, r->id, 0, r->tgid, buf, cap);
		return len ? len
			   : fmt_text(buf, cap, "%s 0x%llx", wait_class_name((unsigned int)r->id2),
				      (unsigned long long)r->id);
	case RES_GO_RUNQ:
		return fmt_text(buf, cap, "Go run queue");
	case RES_FD:
		word = fd_word(r->learned);
		return fmt_text(buf, cap, "fd %llu%s%s", (unsigned long long)r->id,
				*word ? " " : "", word);
	}
	return fmt_text(buf, cap, "%s", "");
}

bool engine_target_at(const struct engine *e, size_t i, struct engine_target *ret)
{
	if (i >= e->names.targets.cnt)
		return false;
	ret->tgid = e->names.targets.p[i].tgid;
	ret->followed = e->names.targets.p[i].followed;
	ret->comm = e->names.targets.p[i].comm;
	return true;
}

const char *engine_host(const struct engine *e)
{
	const struct names *n = &e->names;

	return n->host ? n->text.p + n->texts.p[n->host - 1].off : NULL;
}

const char *engine_note_at(const struct engine *e, size_t i)
{
	const struct names *n = &e->names;

	return i < n->notes.cnt ? n->text.p + n->texts.p[n->notes.p[i]].off : NULL;
}

bool engine_loss_at(const struct engine *e, size_t i, cc_ns *ret_from, cc_ns *ret_to)
{
	if (i >= e->losses.cnt)
		return false;
	*ret_from = e->losses.p[i].from;
	*ret_to = e->losses.p[i].to;
	return true;
}

bool engine_task_now(const struct engine *e, uint32_t tid, cc_ns at, struct engine_now *ret)
{
	const struct side *side;
	const struct task *t = at ? tasks_find(&e->tasks, tid, at) : NULL;
	struct tl_piece tp;

	if (!t)
		return false;
	task_piece(t, &e->tasks, at, false, &tp);
	if (tp.kind == TL_RUN && task_is_go(t)) { /* what its thread is in */
		const struct go_state *g = task_go(&e->tasks, t);
		uint32_t i = vec_lower_bound(&g->ons, from, at);

		if (!i || go_on_end(g, i - 1) < at)
			return false;
		t = &e->tasks.v.p[g->ons.p[i - 1].other];
		task_piece(t, &e->tasks, at, false, &tp);
	}
	if (tp.kind != TL_RUN && tp.kind != TL_RUNQ && tp.kind != TL_BLOCKED)
		return false;
	*ret = (struct engine_now){
		.cls = tp.kind == TL_RUN    ? WAIT_CPU
		       : tp.kind == TL_RUNQ ? WAIT_RUNQ
					    : engine_classify(e, t, tp.ep).cls,
		.since = tp.start,
		.seeded = tp.start < e->stats.first_ns,
	};
	side = tp.kind == TL_BLOCKED ? ep_side(&e->tasks, tp.ep) : NULL;
	if (side && side->told)
		ret->ustack = side->ustack;
	return true;
}
