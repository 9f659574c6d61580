/* SPDX-License-Identifier: Apache-2.0 */
/* ehframe: where functions begin and end, from the FDEs of .eh_frame. Stripped code has no symbols
 * but has these, because it must be able to unwind. Does not run CFI programs. */
#ifndef CC_EHFRAME_H
#define CC_EHFRAME_H

#include "base.h"

struct fde {
	uint64_t start; /* first address, as linked */
	uint32_t len;   /* bytes of code, > 0 */
	uint32_t off;   /* of the FDE in the section */
};

/* Reads all FDEs of a section of @len bytes that is linked at @addr, sorted by start. Anything that
 * does not parse ends or shortens the table; nothing is read outside @data. The caller frees *ret.
 * Returns 0 or -ENOMEM. Source: LSB 5.0 Core, "Exception Frames"; gcc unwind-pe.h. */
CC_NODISCARD int ehframe_read(const uint8_t *data, size_t len, uint64_t addr, struct fde **ret,
			      size_t *ret_cnt);

/* The FDE that covers @addr, or NULL. */
const struct fde *ehframe_find(const struct fde *fdes, size_t cnt, uint64_t addr);

#endif
