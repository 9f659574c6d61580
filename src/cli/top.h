/* SPDX-License-Identifier: Apache-2.0 */
/* top: the live or replayed view, also what `demo` opens on its own server. */
#ifndef CC_TOP_H
#define CC_TOP_H

#include "cli.h"

/* Runs `top` with these options: --replay, or live on its targets; UI, --batch or --json. */
enum cli_exit top_run(const struct cli_opts *o);

#endif
