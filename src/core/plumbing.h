/* SPDX-License-Identifier: Apache-2.0 */
/* plumbing: frames that wait on behalf of what is asked for further out: libc, a runtime. */
#ifndef CC_PLUMBING_H
#define CC_PLUMBING_H

#include "base.h"

/* By where the frame is ("libc.so.6 ..."), and by what it is called ("runtime.gopark+0xd6"). */
bool plumbing_module(const char *module, size_t len);
bool plumbing_function(const char *text, size_t len);

#endif
