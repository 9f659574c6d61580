/* SPDX-License-Identifier: Apache-2.0 */
/* columns: those of Requests, with the names the configuration has for them. */
#ifndef CC_COLUMNS_H
#define CC_COLUMNS_H

/* id, name; in the order of the screen */
#define COLUMNS(X)                    \
	X(ID, "req")                  \
	X(LAT, "lat")                 \
	X(CPU, "cpu")                 \
	X(RUNQ, "runq")               \
	X(MIX, "mix")                 \
	X(DOMINANT, "dominant")       \
	X(SHARE, "share")             \
	X(WOKEN, "woken")             \
	X(HELD, "held")               \
	X(UNEXPLAINED, "unexplained") \
	X(CONF, "conf")               \
	X(AGE, "age")                 \
	X(LABEL, "label")             \
	X(CONN, "conn")

#define X(id, name) COL_##id,
enum col { COLUMNS(X) COL_CNT };
#undef X

#define COLUMNS_ALL ((1u << COL_CNT) - 1)
/* Most requests have no label: only who asks for it gives it room. */
#define COLUMNS_DEFAULT (COLUMNS_ALL & ~(1u << COL_LABEL))
/* A row without these says nothing: they cannot be taken away. */
#define COLUMNS_ALWAYS (1u << COL_ID | 1u << COL_LAT | 1u << COL_DOMINANT)

#endif
