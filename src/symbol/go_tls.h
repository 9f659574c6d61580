/* SPDX-License-Identifier: Apache-2.0 */
/* go_tls: where the running goroutine is found from outside: how far from the thread pointer the
 * runtime keeps g. */
#ifndef CC_GO_TLS_H
#define CC_GO_TLS_H

#include "base.h"

struct go_image;
struct go_tab;

/* Reads it from the code of the runtime. *ret_has: found; without cgo arm64 keeps g in a register
 * alone. Returns 0, or what go_tab_by_name() returned. */
CC_NODISCARD int go_tls_find(const struct go_image *img, struct go_tab *tab, bool *ret_has,
			     int64_t *ret_off);

/* Reads it from @len bytes of x86-64 code at @vaddr. Returns false if it is not told there. */
bool go_tls_x86(const struct go_image *img, uint64_t vaddr, const uint8_t *code, size_t len,
		int64_t *ret);

#endif
