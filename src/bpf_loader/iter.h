/* SPDX-License-Identifier: Apache-2.0 */
/* iter: runs the task iterator over the targets; its output is records. */
#ifndef CC_ITER_H
#define CC_ITER_H

#include "loader_int.h"

/* A cc_record_fn; @ctx is a struct rec_buf. Appends a copy. 0 or -ENOMEM. */
int rec_buf_put(void *ctx, const struct cc_rec *rec, size_t len);

/* Gives all records of @b in order. Returns their number or the negative return of @fn. */
int rec_buf_give(const struct rec_buf *b, cc_record_fn *fn, void *ctx);

void rec_buf_done(struct rec_buf *b);

struct bpf_program;

/* Appends all that @p writes in one run over the threads of the process behind @pidfd, or over all
 * tasks when that is -1. 0 or -errno. */
CC_NODISCARD int iter_read(const struct bpf_program *p, int pidfd, struct rec_buf *b);

/* Appends OPEN_TASK (and SNAP) of the tasks of all targets to @b. @flags: CC_TF_ATTACH, CC_TF_STOP
 * or 0. Gives storage to those that have none. 0 or -errno. */
CC_NODISCARD int iter_tasks(struct loader *l, uint32_t flags, struct rec_buf *b);

#endif
