/* SPDX-License-Identifier: Apache-2.0 */
/* kallsyms: names of kernel code. Source: kernel/kallsyms.c; the addresses read as 0 without
 * CAP_SYSLOG or under kernel.kptr_restrict. */
#ifndef CC_KALLSYMS_H
#define CC_KALLSYMS_H

#include "base.h"

struct kallsyms;

/* Reads @path ("/proc/kallsyms"). Returns 0, -EACCES if the kernel hides all addresses, -ENOENT if
 * there are no text symbols, -ENOMEM or another -errno. */
CC_NODISCARD int kallsyms_new(const char *path, struct kallsyms **ret);
void kallsyms_free(struct kallsyms *k);

/* Names the function that @addr lies in: borrowed strings. *ret_module: "" for the kernel proper.
 * Returns 0 or -ENOENT. */
CC_NODISCARD int kallsyms_find(const struct kallsyms *k, uint64_t addr, const char **ret_name,
			       const char **ret_module, uint64_t *ret_off);

size_t kallsyms_cnt(const struct kallsyms *k);
size_t kallsyms_mem(const struct kallsyms *k); /* bytes */

#endif
