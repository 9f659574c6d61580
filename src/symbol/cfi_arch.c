/* SPDX-License-Identifier: Apache-2.0 */
#include "cfi.h"

#include <elf.h>

#define NO (-1)

static const struct cfi_arch archs[] = {
	{ .machine = EM_X86_64, .ra = CFI_RA, .place = { 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
							 11, 12, 13, 14, 15, 16, NO, NO, NO, NO, NO,
							 NO, NO, NO, NO, NO, NO, NO, NO, NO, NO } },
	/* x19 .. x28, the frame pointer x29, the link register x30, sp */
	{ .machine = EM_AARCH64,
	  .ra = 30,
	  .link = true,
	  .place = { NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO,     NO,     NO,
		     NO, NO, NO, 0,  1,  2,  3,  4,  5,  8,  9,  10, 11, CFI_FP, CFI_RA, CFI_SP } },
};

const struct cfi_arch *cfi_arch(uint16_t machine)
{
	for (size_t i = 0; i < ARRAY_SIZE(archs); i++) {
		if (archs[i].machine == machine)
			return &archs[i];
	}
	return NULL;
}
