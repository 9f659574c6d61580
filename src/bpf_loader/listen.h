/* SPDX-License-Identifier: Apache-2.0 */
/* listen: who listens where, from /proc alone: for --port and for the picker of servers. Processes
 * whose descriptors may not be looked at (another user's, without CAP_DAC_READ_SEARCH) are counted.
 */
#ifndef CC_LISTEN_H
#define CC_LISTEN_H

#include "base.h"

struct listen_server {
	uint32_t pid; /* of the process, in the caller's pid namespace */
	uint16_t port;
	uint16_t pad;
	uint32_t conns;  /* established connections to this port in its network namespace, now */
	uint64_t netns;  /* inode of its network namespace */
	uint32_t parent; /* another entry's pid when that process is its parent; 0: none */
	char comm[20];   /* NUL-terminated, not trusted */
};

/*
 * One entry for each process and TCP port it listens on, by port, then pid; a process that listens
 * twice (IPv4 and IPv6, SO_REUSEPORT) counts once. *ret is the caller's to free(); NULL when there
 * is none. *ret_hidden (may be NULL): processes that could not be looked at. Returns 0, -ENOMEM or
 * the -errno of opening /proc. Source: proc(5), /proc/PID/net/tcp, tcp6 and fd.
 */
CC_NODISCARD int listen_list(struct listen_server **ret, size_t *ret_cnt, uint32_t *ret_hidden);

#endif
