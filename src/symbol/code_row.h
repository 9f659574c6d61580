/* SPDX-License-Identifier: Apache-2.0 */
/* code_row: how to unwind at an address of which a file tells nothing (musl has no unwind
 * information, nor have programs that were built to do without), from what its code will do: on
 * every way from there to a return the stack pointer comes to where the return address lies.
 * x86-64. Ways that disagree, or that are not understood, give nothing. It is a guess all the same:
 * a function that does not return looks as if it went on into the next one. */
#ifndef CC_CODE_ROW_H
#define CC_CODE_ROW_H

#include "elf_file.h"

struct cfi_row;

/* Fills the rules of @row, and guessed, for @vaddr, where an instruction begins; @called: it is a
 * return address. False: nothing is found. */
bool code_row(struct elf_file *f, uint64_t vaddr, bool called, struct cfi_row *row);

/* Does a call that could have led to @vaddr, a place in @f, end at @ret_at, in @caller? */
bool code_called(struct elf_file *f, uint64_t vaddr, struct elf_file *caller, uint64_t ret_at);

#endif
