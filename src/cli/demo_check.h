/* SPDX-License-Identifier: Apache-2.0 */
/* demo_check: the self-test: drives every cause once, traces it, compares with the demo's log. */
#ifndef CC_DEMO_CHECK_H
#define CC_DEMO_CHECK_H

#include "cli.h"

/* Prints one line per cause on stdout. CLI_FAILED when an answer is not good enough. */
enum cli_exit demo_check(struct cli_opts *o);

#endif
