/* SPDX-License-Identifier: Apache-2.0 */
/* go_allgs: where the runtime keeps the list of all goroutines. No table tells it in a stripped
 * program, but the function that adds to the list does. */
#ifndef CC_GO_ALLGS_H
#define CC_GO_ALLGS_H

#include "base.h"

struct elf_file;
struct go_tab;

/* As linked: the address of the slice {first, length, room}; 0: not to be had. Returns 0 or what
 * go_tab_by_name() returned. */
CC_NODISCARD int go_allgs_find(struct elf_file *f, struct go_tab *tab, uint64_t *ret);

/* The same in the function of @len bytes at @code, which lies at @at. */
uint64_t go_allgs_x86(const uint8_t *code, size_t len, uint64_t at);

#endif
