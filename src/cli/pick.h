/* SPDX-License-Identifier: Apache-2.0 */
/* pick: the target, when none was named: a screen of listening servers. */
#ifndef CC_PICK_H
#define CC_PICK_H

#include "cli.h"
#include "config.h"
#include "snapshot.h"

/* Lets the user choose a server and makes it the target of @o. CLI_OK at once when there is a
 * target, or no terminal to ask on (what traces then says what is missing). Else the exit code, its
 * line written. */
CC_NODISCARD enum cli_exit pick_target(struct cli_opts *o, const struct config *cfg);

/* Where the targets of @s listen: ":8080, :8443"; "" when that is not known. Reads /proc: some
 * milliseconds. For session_opts.ports. */
void pick_ports(const struct snapshot *s, char *buf, size_t cap);

#endif
