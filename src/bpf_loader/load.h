/* SPDX-License-Identifier: Apache-2.0 */
/* load: opens, loads and attaches the kernel programs in the best tier this kernel takes. */
#ifndef CC_LOAD_H
#define CC_LOAD_H

#include "loader_int.h"

struct btf;

/* Loads and attaches into @l->skel; l->o holds the options, @asked the targets to set before
 * attach. Returns 0 or what loader_source_new() says. */
CC_NODISCARD int load_programs(struct loader *l, const struct loader_opts *asked,
			       struct cc_err *err);

/* Does this kernel have tracepoint @name for BPF (a btf_trace_@name type)? */
bool load_has_tracepoint(const struct btf *kernel, const char *name);

/* Addresses of the functions of CC_BPF_FUNCTIONS, 0 where kallsyms does not tell. */
void load_functions(uint64_t fn[CC_BPF_FN_CNT]);

#endif
