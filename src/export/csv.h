/* SPDX-License-Identifier: Apache-2.0 */
/* csv: tables for spreadsheets and data frames (RFC 4180, a head line; docs/EXPORT.md has the
 * columns). Text that a spreadsheet would take for a formula gets a ' before it. */
#ifndef CC_CSV_H
#define CC_CSV_H

#include <stdio.h>

#include "snapshot.h"

/* One line a piece of a path, in pre-order. Return 0, or -EIO when @out has an error. */
CC_NODISCARD int csv_write(const struct snapshot *s, FILE *out);
/* One line a request. */
CC_NODISCARD int csv_requests_write(const struct snapshot *s, FILE *out);

#endif
