/* SPDX-License-Identifier: Apache-2.0 */
/* radix: sorts tables by address. A large program has some hundred thousand functions and symbols,
 * and comparing them was most of what opening it took. */
#ifndef CC_RADIX_H
#define CC_RADIX_H

#include "base.h"

/* Sorts @cnt < 2^32 elements of @size bytes by the uint64_t that each begins with; equal ones stay
 * in their order. Returns 0 or -ENOMEM; then nothing has changed. */
CC_NODISCARD int radix_sort(void *v, size_t cnt, size_t size);

#endif
