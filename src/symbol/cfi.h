/* SPDX-License-Identifier: Apache-2.0 */
/* cfi: how to find the caller's registers at an address of a file. The unwind program of .eh_frame
 * is run once per address; what it says is kept as a row, shared by all processes that map the
 * file. Not by libdw, whose interpreter trusts the register numbers in the file: the file is
 * hostile, so everything here is bounded. Registers have the numbers they have on x86-64; those of
 * arm64 that a callee keeps take the places of others (cfi_arch). Source: DWARF 5, section 6.4;
 * x86-64 psABI 1.0, figure 3.36; DWARF for the Arm 64-bit Architecture, 2023Q3, sections 4.1, 4.4.
 */
#ifndef CC_CFI_H
#define CC_CFI_H

#include "ehframe.h"

#include <sys/types.h>

#define CFI_REGS 17 /* rax rdx rcx rbx rsi rdi rbp rsp r8..r15, return address */
#define CFI_FP 6
#define CFI_SP 7
#define CFI_RA 16

enum cfi_kind {
	CFI_SAME,      /* has not changed; never in a row */
	CFI_UNDEFINED, /* cannot be known; of the return address: there is no caller */
	CFI_SAVED,     /* in memory at CFA + off */
	CFI_CFA_VALUE, /* is CFA + off */
	CFI_REG,       /* is register from + off (off is 0 but for the CFA itself) */
	CFI_SAVED_AT,  /* in memory where the expression says */
	CFI_VALUE,     /* is what the expression says */
};

struct cfi_rule {
	uint8_t reg;  /* that it is for */
	uint8_t kind; /* enum cfi_kind */
	uint8_t from; /* CFI_REG */
	uint8_t pad;
	int32_t off;
	uint32_t expr, expr_len; /* in the table's pool */
};

struct cfi_row {
	uint64_t vaddr;
	bool bad;       /* there is no usable information */
	bool signal;    /* the caller did not call, it was interrupted */
	bool ra_signed; /* arm64: the return address has a signature in its upper bits */
	bool guessed;   /* from the code alone (code_row.h) */
	uint8_t cnt;    /* rules; a register without one has not changed */
	struct cfi_rule cfa, rules[CFI_REGS];
};

/* Where the programs are. */
struct cfi_source {
	const struct fde *fdes;
	size_t fde_cnt;
	uint64_t len, debug_len; /* of .eh_frame and .debug_frame */
	/* Reads at @off of one. Returns the bytes read, or < 0. */
	ssize_t (*read)(void *ctx, bool debug, uint64_t off, void *buf, size_t len);
	/* Fills a row of CFI_BY_CODE. False: it stays a bad one. */
	bool (*guess)(void *ctx, uint64_t vaddr, bool called, struct cfi_row *row);
	void *ctx;
};

#define CFI_DWARF_REGS 32
#define CFI_SNAP_REGS 14
#define CFI_SIG_REGS 33

struct cfi_arch {
	uint16_t machine;             /* EM_* */
	uint8_t ra;                   /* number in DWARF of the return address */
	bool link;                    /* which is a register until it is saved */
	uint64_t code_mask;           /* what of a signed return address is an address */
	int8_t place[CFI_DWARF_REGS]; /* by number in DWARF: here; -1: not followed */
	int8_t snap[CFI_SNAP_REGS];   /* the same by the order of registers in a SNAP, r15 last */
	/* What a handler of signals returns to, as every libc has it, and where the registers of
	 * what was interrupted lie then: so far above the stack pointer, in this order (by number
	 * here; CFI_IP; -1). */
	const char *sigreturn;
	uint8_t sigreturn_len, sigregs_cnt;
	uint16_t sigregs_at;
	int8_t sigregs[CFI_SIG_REGS];
};
#define CFI_IP 32
const struct cfi_arch *cfi_arch(uint16_t machine); /* NULL: not known */

/* What this program runs on, and so what it traces. */
#define CFI_MACHINE_X86_64 62 /* EM_X86_64 */
#if defined(__aarch64__)
#define CFI_MACHINE_HERE 183 /* EM_AARCH64 */
#else
#define CFI_MACHINE_HERE CFI_MACHINE_X86_64
#endif

struct cfi; /* rows of one file */

CC_NODISCARD int cfi_new(const struct cfi_arch *arch, struct cfi **ret); /* 0 or -ENOMEM */
void cfi_free(struct cfi *c);                                            /* NULL is a no-op */

/* In an address: not by an FDE, by the code that follows there; and it is a return address. */
#define CFI_BY_CODE (1ull << 63)
#define CFI_CALLED (1ull << 62)

/* The row for @vaddr; it may be a bad one. NULL: no memory. Borrowed until the next call. */
const struct cfi_row *cfi_row(struct cfi *c, const struct cfi_source *s, uint64_t vaddr);

/* Makes the row that is known for @vaddr a bad one. */
void cfi_forget(struct cfi *c, uint64_t vaddr);

/* The bytes of @rule's expression. Borrowed until the next cfi_row(). */
struct bytes cfi_expr(const struct cfi *c, const struct cfi_rule *rule);

size_t cfi_mem(const struct cfi *c); /* bytes */

#endif
