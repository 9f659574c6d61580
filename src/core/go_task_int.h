/* SPDX-License-Identifier: Apache-2.0 */
/* go_task_int: what go_task.c, go_on.c and go_wait.c share. Functions return 0, -EINVAL, -ENOMEM.
 */
#ifndef CC_GO_TASK_INT_H
#define CC_GO_TASK_INT_H

#include "task.h"

/* An index of @v that is free, or the next one; [0] is never given. 0: no memory. */
#define pool_get(ts, v, unused)                                         \
	({                                                              \
		uint32_t i_ = 0;                                        \
		if ((unused)->cnt)                                      \
			i_ = (unused)->p[--(unused)->cnt];              \
		else if (!vec_reserve((ts)->mem, v, (v)->cnt + 2u))     \
			i_ = (v)->cnt ? (v)->cnt : 1;                   \
		if (i_ >= (v)->cnt && i_) {                             \
			if (!(v)->cnt)                                  \
				memset(&(v)->p[0], 0, sizeof(*(v)->p)); \
			(v)->cnt = i_ + 1;                              \
		}                                                       \
		if (i_)                                                 \
			memset(&(v)->p[i_], 0, sizeof(*(v)->p));        \
		i_;                                                     \
	})

/* What @t has besides as a goroutine, or as a thread that runs them; made if need be. NULL: no
 * memory. */
struct go_state *go_state_get(struct tasks *ts, struct task *t);

/* @tgid runs goroutines; its waits, its items are told. */
CC_NODISCARD int go_proc_seen(struct tasks *ts, uint32_t tgid, bool waits, bool items);

/* *ret: 1 + index of the task of @goid; 0: goid 0, or no room for it. */
CC_NODISCARD int go_index(struct tasks *ts, uint32_t tgid, uint64_t goid, uint32_t *ret);

/* *ret: index of the thread @tid. */
CC_NODISCARD int go_thread_of(struct tasks *ts, uint32_t tid, uint32_t tgid, cc_ns at,
			      uint32_t *ret);

/* Thread @ti has goroutine @gi (GO_NONE: none) from @at on. */
CC_NODISCARD int go_bind(struct tasks *ts, uint32_t ti, uint32_t gi, cc_ns at);

/* What @idx had been with since before @at it was with until then, at the latest. */
void go_on_close(struct tasks *ts, uint32_t idx, uint32_t other, cc_ns at);

#endif
