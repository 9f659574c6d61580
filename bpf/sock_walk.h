/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* sock_walk: what a run of the socket iterator is for. Shared with the loader. */
#ifndef CC_SOCK_WALK_H
#define CC_SOCK_WALK_H

enum {
	SOCK_WALK_LISTENERS = 0,   /* seeding, first: ports must be known before connections */
	SOCK_WALK_CONNECTIONS = 1, /* seeding */
	SOCK_WALK_REFRESH = 2,
	SOCK_WALK_STOP = 3, /* refresh for the last time */
};

#endif
