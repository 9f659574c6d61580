/* SPDX-License-Identifier: Apache-2.0 */
/* ui_fixture: a full snapshot made by hand, the same every time, for tests of the screens. */
#ifndef UI_FIXTURE_H
#define UI_FIXTURE_H

#include "snapshot.h"

enum {
	SNAP_EMPTY = 1 << 0, /* attached, nothing finished yet */
	SNAP_GONE = 1 << 1,  /* the target exited */
	SNAP_LOSS = 1 << 2,  /* events were lost */
	SNAP_ENDED = 1 << 3, /* end of a replay */
	SNAP_PAUSED = 1 << 4,
	SNAP_LATER = 1 << 5,  /* a second later, a new slow request */
	SNAP_LAG = 1 << 7,    /* the host is too busy to keep up */
	SNAP_FORGOT = 1 << 6, /* 7f3a9c#3 has left the window and is no longer known */
};

/* Caller owns it (snapshot_free). Aborts when out of memory. */
struct snapshot *ui_fixture(unsigned int how);

/* The request that most tests look at: 7f3a9c#3, waiting for a lock held by a task in fsync. */
#define FIXTURE_ID ((struct cc_reqid){ 0x7f3a9c, 3, CC_REQID_SOCK })

#endif
