/* SPDX-License-Identifier: Apache-2.0 */
/* stop_signal: SIGINT, SIGTERM and SIGHUP as something to ask for, for commands without a UI. */
#ifndef CC_STOP_SIGNAL_H
#define CC_STOP_SIGNAL_H

#include "base.h"

/* Blocks the signals in this thread and those it starts. Returns a descriptor or -errno. */
CC_NODISCARD int stop_signal_open(void);

/* Whether one has come since it was opened. */
bool stop_signal_came(int fd);

#endif
