/* SPDX-License-Identifier: Apache-2.0 */
#include "snap_text.h"

#include "fmt.h"

#include <string.h>

/* Functions of the kernel, by how they begin, that say so: the innermost counts. */
static const struct {
	const char *prefix, *work;
} works[] = {
	{ "handle_softirqs", "softirq" }, { "__do_softirq", "softirq" },
	{ "asm_sysvec_", "interrupt" },   { "asm_common_interrupt", "interrupt" },
	{ "try_to_free", "reclaim" },     { "shrink_", "reclaim" },
	{ "compact_zone", "reclaim" },    { "asm_exc_page_fault", "page fault" },
};

#define ROUND_TRIPS 4 /* a wait this much longer than one is not the way there and back */

const char *snap_ended_name(unsigned int ended)
{
#define X(id, name) name,
	static const char *const names[CC_ENDED_CNT] = { CC_ENDED(X) };
#undef X
	return ended < CC_ENDED_CNT ? names[ended] : "";
}

const char *snap_state_name(unsigned int state)
{
	static const char *const names[] = { [CC_RQS_DONE] = "done",
					     [CC_RQS_IN_FLIGHT] = "in_flight",
					     [CC_RQS_RESUMED] = "resumed" };
	return state < ARRAY_SIZE(names) ? names[state] : "";
}

const char *snap_waker_name(unsigned int waker_kind)
{
#define X(id, name) name,
	static const char *const names[CC_WAKER_CNT] = { CC_WAKERS(X) };
#undef X
	return waker_kind < CC_WAKER_CNT ? names[waker_kind] : "";
}

struct snap_text snap_task_text(const struct snapshot *s, const struct snap_task *t)
{
	const char *comm = snapshot_str(s, t->comm);
	struct snap_text ret = { 0 };

	if (t->goid)
		fmt_text(ret.s, sizeof(ret.s), "%.60s%sg%llu", comm, *comm ? "/" : "",
			 (unsigned long long)t->goid);
	else if (!t->tid)
		fmt_text(ret.s, sizeof(ret.s), "-");
	else if (*comm)
		fmt_text(ret.s, sizeof(ret.s), "%.60s/%u", comm, t->tid);
	else
		fmt_text(ret.s, sizeof(ret.s), "tid %u", t->tid);
	return ret;
}

struct snap_text snap_waker_text(const struct snapshot *s, const struct snap_piece *p)
{
	const char *kind = snap_waker_name(p->p.waker_kind);
	struct snap_text ret = { 0 };

	if (p->p.waker_kind == CC_WAKER_TASK || p->p.waker_kind == CC_WAKER_KTHREAD)
		return snap_task_text(s, &p->waker);
	fmt_text(ret.s, sizeof(ret.s), "%s", *kind ? kind : "-");
	return ret;
}

struct snap_text snap_net_text(const struct cc_piece *p)
{
	cc_ns trip = CC_US((cc_ns)p->srtt_us), ns = p->end - p->start;
	struct snap_text ret = { 0 };
	char ms[FMT_LEN];

	if (wait_class_letter(p->cls) != 'N')
		return ret;
	if (p->retrans > 0) {
		fmt_text(ret.s, sizeof(ret.s),
			 ", %u packet%s sent again: lost on the way, or no room at the peer",
			 p->retrans, p->retrans > 1 ? "s" : "");
		return ret;
	}
	if (!trip || ns < CC_MS(1ull) || ns < ROUND_TRIPS * trip || p->flags & CC_PC_OPEN)
		return ret;
	fmt_ms(ms, sizeof(ms), trip);
	fmt_text(ret.s, sizeof(ret.s), ", nothing sent again, round trip %s ms: the peer %s", ms,
		 p->cls == WAIT_NET_SEND ? "did not read" : "took that long");
	return ret;
}

const char *snap_kernel_work(const struct snapshot *s, const struct snap_piece *p)
{
	const struct snap_stack *st;

	if (p->p.cls != WAIT_CPU || !p->kstack || p->kstack > s->stack_cnt)
		return "";
	st = &s->stacks[p->kstack - 1];
	for (uint32_t i = 0; i < st->cnt && st->first + i < s->frame_cnt; i++) {
		const char *name = snapshot_str(s, s->frames[st->first + i].text);

		for (size_t j = 0; j < ARRAY_SIZE(works); j++) {
			if (!strncmp(name, works[j].prefix, strlen(works[j].prefix)))
				return works[j].work;
		}
	}
	return "";
}
