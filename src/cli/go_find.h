/* SPDX-License-Identifier: Apache-2.0 */
/* go_find: tells the loader which processes are Go programs and what they are like. */
#ifndef CC_GO_FIND_H
#define CC_GO_FIND_H

#include "cli.h"
#include "loader.h"

/* Fills in @ret; what it holds is freed by its done(). Returns 0 or -ENOMEM. */
CC_NODISCARD int go_find_new(const struct cli_opts *o, enum loader_go_tier tier,
			     struct loader_go *ret);

#endif
