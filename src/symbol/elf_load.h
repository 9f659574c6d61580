/* SPDX-License-Identifier: Apache-2.0 */
/* elf_load: fills a struct elf_file with libelf. Only elf_file.c uses it. */
#ifndef CC_ELF_LOAD_H
#define CC_ELF_LOAD_H

#include "elf_file.h"

/* Reads all tables of f->fd. What is damaged or too large is left empty. Returns 0, -ENOEXEC,
 * -ENOMEM; on failure @f is half built and elf_file_put() frees it. */
CC_NODISCARD int elf_load(struct elf_file *f);

/* Of a file without section headers: finds .eh_frame by the program headers, or by what it looks
 * like, and reads its FDEs. Returns 0 or -ENOMEM. */
CC_NODISCARD int elf_bare_frames(struct elf_file *f);

#endif
