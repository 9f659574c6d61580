/* SPDX-License-Identifier: Apache-2.0 */
/* go_sites: where in the runtime's functions a probe costs little: on an instruction that the
 * kernel emulates, while the arguments are still in their registers. */
#ifndef CC_GO_SITES_H
#define CC_GO_SITES_H

#include "go_target.h"

struct elf_file;
struct go_tab;

/* Fills @ret, one for each enum go_func_id; off 0: the function, or the call, is not there. Returns
 * 0, or what go_tab_by_name() returned. */
CC_NODISCARD int go_sites_find(struct elf_file *f, struct go_tab *tab, struct go_site *ret);

/* Fills @ret: where ready(), at site @ready, or what ends in it is called. None is told unless all
 * places are sure, and some cost little. Returns 0, or what go_tab_by_name() returned. */
CC_NODISCARD int go_sites_ready(struct elf_file *f, struct go_tab *tab, const struct go_site *ready,
				struct go_ready *ret);

/* Fills in t->handlers. Returns 0, or what go_tab_by_match() returned. */
CC_NODISCARD int go_sites_handlers(struct go_tab *tab, struct go_target *t);

/* The best place in a function of @len bytes at most that begins with @code. */
void go_site_x86(const uint8_t *code, size_t len, struct go_site *ret);
void go_site_arm64(const uint8_t *code, size_t len, struct go_site *ret);

/* Where in the @len bytes at @code, which lie at address @at, the @nth call (from 0) of @to is;
 * @len: nowhere. */
size_t go_site_call_x86(const uint8_t *code, size_t len, uint64_t at, uint64_t to,
			unsigned int nth);

/* Is there a nop of 5 bytes just before the call at @at of the function that begins with @code?
 * Go's assembler fills it in where a call would cross 32 bytes, so arguments are as at the call. */
bool go_site_nop_x86(const uint8_t *code, size_t at);

#endif
