/* SPDX-License-Identifier: Apache-2.0 */
/* rights: the capabilities that live tracing uses, what each gives, and the end of all others. */
#ifndef CC_RIGHTS_H
#define CC_RIGHTS_H

#include "base.h"

#include <sys/capability.h>

/* X(capability, needed, what one has by it): those without which one can do with less are not
 * needed. */
#define CC_RIGHTS(X)                                                                           \
	X(BPF, true, "loads kernel programs")                                                  \
	X(PERFMON, true, "lets them read kernel and user memory")                              \
	X(SYS_PTRACE, false, "maps and memory of other users' processes: their stacks")        \
	X(DAC_READ_SEARCH, false,                                                              \
	  "descriptors of other users' processes: who listens on a port, names of open files") \
	X(CHECKPOINT_RESTORE, false,                                                           \
	  "mapped files of other users' processes, also deleted ones: their symbols")          \
	X(SYSLOG, false, "kernel addresses: kernel frames have names")

/* All of them, as setcap takes them. */
#define CC_RIGHTS_SETCAP                                                                        \
	"setcap cap_bpf,cap_perfmon,cap_sys_ptrace,cap_dac_read_search,cap_checkpoint_restore," \
	"cap_syslog+ep <criticast>"

/* Whether the calling thread has @cap, or what stood for it before kernels knew it. */
enum rights_state { RIGHTS_NO = 0, RIGHTS_YES = 1, RIGHTS_UNKNOWN = 2 };
enum rights_state rights_have(cap_value_t cap);

/* Gives up, for the calling thread and those it starts later, every capability but these and what
 * writing files and taking a place before the load need. Best effort: one who may not is no worse
 * off. Source: capabilities(7). */
void rights_narrow(void);

#endif
