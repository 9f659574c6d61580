/* SPDX-License-Identifier: Apache-2.0 */
/* uprobe: probes on the file of a running program, by uprobe_multi where the kernel has it, and
 * what a hit of one costs on this machine. */
#ifndef CC_UPROBE_H
#define CC_UPROBE_H

#include "base.h"

/* enum bpf_attach_type of programs for uprobe_multi, since 6.6; older headers have it not. */
#define UPROBE_MULTI 48

/* Does this kernel have uprobe_multi (6.6)? */
bool uprobe_has_multi(void);

/* Sets a probe that runs @prog_fd at each of @cnt offsets @off in the file @path, for process @pid;
 * there it gets the cookie of that place (@cookies NULL: 0). Returns what holds them until it is
 * closed; or -errno. */
int uprobe_multi_set(int prog_fd, const char *path, const uint64_t *off, const uint64_t *cookies,
		     uint32_t cnt, uint32_t pid);

/* What a hit costs beside its program, in ns of CPU; 0: not known. */
struct uprobe_price {
	cc_ns trap; /* where the kernel emulates the instruction; single-stepped: 13 times that */
	cc_ns nop;  /* on a nop of five bytes, which from 6.18 on becomes a call */
};

/* Measures that, with probes on functions of our own. Takes some 10 ms, and as long as the kernel
 * takes to remove two probes, tenths of a second. Needs the rights that any probe needs. Returns 0
 * or -errno. */
int uprobe_measure(struct uprobe_price *ret);

#endif
