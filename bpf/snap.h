/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * snap: raw stacks for user space to unwind: registers, the top of the user stack, kernel frames.
 *
 * Two ways. In place (late tier, wakers): filled in a per-CPU buffer and sent at once. Kept (waking
 * and eager tiers): filled while the task sleeps, in its own storage, and sent when the wait turned
 * out slow. The kept form has the kernel frames put before the user bytes afterwards, so it leaves
 * room in front:
 *
 *	0 ... off	  off + header	   SNAP_BYTES_AT
 *	| (free) | header | kernel frames  | user stack ... |
 */
#ifndef CC_BPF_SNAP_H
#define CC_BPF_SNAP_H

#include "task.h"

#define SNAP_FRAME_BYTES (CC_SNAP_KFRAMES * 8)
#define SNAP_BYTES_AT (SNAP_FRAME_BYTES + sizeof(struct cc_rec_snap))
#define SNAP_WINDOW_NS 20000000ull
#define SNAP_PAGE 4096u

struct snap_buf {
	__u8 room[SNAP_BYTES_AT + CC_SNAP_MAX +
		  SNAP_PAGE]; /* the last page only helps the verifier */
};

/* The lowest known address above @sp where the stack may begin: start_stack for the main thread,
 * the thread control block for the others, which glibc and musl put on top of the stack. */
static __always_inline __u64 snap_stack_top(struct task_struct *p, __u64 sp)
{
	struct mm_struct *mm = p->mm;
	__u64 tcb = p->thread.fsbase, main_top = mm ? mm->start_stack : 0;

	if (tcb <= sp)
		return main_top > sp ? main_top : 0;
	return main_top > sp && main_top < tcb ? main_top : tcb;
}

static __always_inline void snap_regs(struct cc_rec_snap *s, struct task_struct *p,
				      struct pt_regs *r)
{
	s->owner_tid = p->pid;
	s->owner_tgid = p->tgid;
	s->ip = REGS_IP(r);
	s->sp = REGS_SP(r);
	s->bp = REGS_BP(r);
	s->regs[0] = r->ax;
	s->regs[1] = r->bx;
	s->regs[2] = r->cx;
	s->regs[3] = r->dx;
	s->regs[4] = r->si;
	s->regs[5] = r->di;
	s->regs[6] = r->r8;
	s->regs[7] = r->r9;
	s->regs[8] = r->r10;
	s->regs[9] = r->r11;
	s->regs[10] = r->r12;
	s->regs[11] = r->r13;
	s->regs[12] = r->r14;
	s->r15 = r->r15;
	s->stack_top = snap_stack_top(p, s->sp);
}

#endif
