/* SPDX-License-Identifier: Apache-2.0 */
/* refused: which program it was that the kernel did not take. libbpf tells a code for all of them.
 */
#ifndef CC_REFUSED_H
#define CC_REFUSED_H

#include <bpf/libbpf.h>

/* Loads @o. *ret_name: the program that was refused, of @o, else NULL. Returns 0 or -errno. For
 * tests, CRITICAST_REFUSE=PROGRAM has the kernel refuse that one. */
int refused_load(struct bpf_object_skeleton *s, const char **ret_name);

/* Attaches @prog; for tests, CRITICAST_REFUSE=@PROGRAM has that one fail. NULL with errno. */
struct bpf_link *refused_attach(struct bpf_program *prog);

#endif
