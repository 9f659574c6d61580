/* SPDX-License-Identifier: Apache-2.0 */
/* batch: the screens' facts as plain text, for scripts and the clipboard. */
#ifndef CC_BATCH_H
#define CC_BATCH_H

#include "snapshot.h"

/* One request and its path as text. *ret by malloc, the caller frees it. 0 or -ENOMEM. */
CC_NODISCARD int batch_request(const struct snapshot *s, const struct snap_request *r, char **ret);

#endif
