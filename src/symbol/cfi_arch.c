/* SPDX-License-Identifier: Apache-2.0 */
#include "cfi.h"

#include <elf.h>

#define NO (-1)

static const struct cfi_arch archs[] = {
	{ .machine = EM_X86_64,
	  .ra = CFI_RA,
	  .code_mask = UINT64_MAX,
	  .place = { 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
		     16, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO },
	  .snap = { 0, 3, 2, 1, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15 },
	  /* mov rax, 15; syscall. Above lies a ucontext: arch/x86/include/uapi/asm/sigcontext.h */
	  .sigreturn = "\x48\xc7\xc0\x0f\0\0\0\x0f\x05",
	  .sigreturn_len = 9,
	  .sigregs_at = 40,
	  .sigregs_cnt = 17,
	  .sigregs = { 8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, CFI_SP, CFI_IP } },
	/* x19 .. x28, the frame pointer x29, the link register x30, sp. The signature of a return
	 * address is where addresses of 48 bits, which are all that Linux gives unless it is asked
	 * for more, have nothing. */
	{ .machine = EM_AARCH64,
	  .ra = 30,
	  .link = true,
	  .code_mask = (1ull << 48) - 1,
	  .place = { NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO,     NO,     NO,
		     NO, NO, NO, 0,  1,  2,  3,  4,  5,  8,  9,  10, 11, CFI_FP, CFI_RA, CFI_SP },
	  .snap = { 0, 1, 2, 3, 4, 5, 8, 9, 10, 11, CFI_RA, NO, NO, NO },
	  /* mov x8, 139; svc 0. Above lie siginfo, 128 bytes, and a ucontext, whose mcontext begins
	   * with a fault's address: arch/arm64/include/uapi/asm/sigcontext.h */
	  .sigreturn = "\x68\x11\x80\xd2\x01\0\0\xd4",
	  .sigreturn_len = 8,
	  .sigregs_at = 128 + 176 + 8,
	  .sigregs_cnt = 33,
	  .sigregs = { NO, NO, NO, NO, NO, NO, NO, NO,     NO,     NO,     NO,
		       NO, NO, NO, NO, NO, NO, NO, NO,     0,      1,      2,
		       3,  4,  5,  8,  9,  10, 11, CFI_FP, CFI_RA, CFI_SP, CFI_IP } },
};

const struct cfi_arch *cfi_arch(uint16_t machine)
{
	for (size_t i = 0; i < ARRAY_SIZE(archs); i++) {
		if (archs[i].machine == machine)
			return &archs[i];
	}
	return NULL;
}
