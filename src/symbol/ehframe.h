/* SPDX-License-Identifier: Apache-2.0 */
/* ehframe: the entries of .eh_frame, or of .debug_frame, which only differ in how an FDE says where
 * its CIE is. Its FDEs tell where functions begin and end, also those of stripped code, because
 * that too must be able to unwind. Source: LSB 5.0 Core, "Exception Frames"; gcc unwind-pe.h. The
 * 64-bit form is not read: nobody writes it. */
#ifndef CC_EHFRAME_H
#define CC_EHFRAME_H

#include "bytes.h"

struct fde {
	uint64_t start; /* first address, as linked */
	uint32_t len;   /* bytes of code, > 0 */
	uint32_t off;   /* of the FDE in the section, FDE_DEBUG if that is .debug_frame */
};
#define FDE_DEBUG (1u << 31)

struct cie {
	uint64_t code_align;
	int64_t data_align;
	uint64_t ra_reg;
	uint8_t enc;          /* DW_EH_PE_* of the addresses in its FDEs */
	bool augmented;       /* its FDEs have a block of augmentation data, which can be skipped */
	bool signal;          /* of a frame that was interrupted, not called */
	struct bytes program; /* what it begins every FDE's unwind program with */
};

/* Reads all FDEs of a section of @len bytes that is linked at @addr, sorted by start. Anything that
 * does not parse ends or shortens the table. The caller frees *ret. Returns 0 or -ENOMEM. */
CC_NODISCARD int ehframe_read(const uint8_t *data, size_t len, uint64_t addr, struct fde **ret,
			      size_t *ret_cnt);

/* Adds those of a .debug_frame to the table, for code that it has nothing of. 0 or -ENOMEM. */
CC_NODISCARD int ehframe_add_debug(const uint8_t *data, size_t len, struct fde **fdes,
				   size_t *fde_cnt);

/* The address of .eh_frame that .eh_frame_hdr, linked at @addr, tells. False: none. */
bool ehframe_hdr(const uint8_t *data, size_t len, uint64_t addr, uint64_t *ret);

/* Where the CIE of the FDE at @off lies in its section. @id: the word behind its length. False: it
 * is no FDE. */
bool fde_cie(bool debug, uint64_t off, uint32_t id, uint64_t *ret);

/* The FDE that covers @addr, or NULL. */
const struct fde *ehframe_find(const struct fde *fdes, size_t cnt, uint64_t addr);

/* Parses the CIE that fills @b (without its length field). Returns false if it is none. */
bool cie_parse(struct bytes *b, struct cie *ret);

/* Parses the FDE that fills @b (from behind its CIE pointer), up to its program, which is left in
 * @b. *ret_start is relative to the place of @b if @c's encoding is; *ret_len are bytes of code.
 * Returns false if it cannot be understood. */
bool fde_parse(struct bytes *b, const struct cie *c, uint64_t *ret_start, uint64_t *ret_len);

#endif
