/* SPDX-License-Identifier: Apache-2.0 */
/* go_wrap: what `go f(x)` starts. The compiler makes a function of its own for it, which takes the
 * arguments out of a closure and calls f: "Serve.func3", from 1.22 "Serve.gowrap3". It is f whom
 * the goroutine is for. */
#ifndef CC_GO_WRAP_H
#define CC_GO_WRAP_H

#include "base.h"

struct elf_file;
struct go_tab;
struct go_func;

/* The name of the function that @fn was made to call; false: it is no such function, or what it
 * calls is not told by its code. */
bool go_wrapped(struct elf_file *f, struct go_tab *tab, const struct go_func *fn, char *ret,
		size_t cap);

#endif
