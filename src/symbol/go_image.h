/* SPDX-License-Identifier: Apache-2.0 */
/* go_image: a file's data as the program will see it: pointers in a PIE are made by the loader, so
 * relocations are applied to what is read. For the time of one look at the file. */
#ifndef CC_GO_IMAGE_H
#define CC_GO_IMAGE_H

#include "elf_file.h"

#define GO_LOOK 4 /* words a scan always shows from the one it is at */

struct go_reloc;

struct go_image {
	struct elf_file *f;   /* borrowed */
	struct go_reloc *rel; /* sorted by address */
	size_t rel_cnt;
};

/* Returns 0 or -ENOMEM. What is damaged is as if it was not there. */
CC_NODISCARD int go_image_init(struct go_image *img, struct elf_file *f);
void go_image_done(struct go_image *img);

/* As elf_file_read_at(), relocated. */
ssize_t go_image_read(const struct go_image *img, uint64_t vaddr, void *buf, size_t len);
bool go_image_word(const struct go_image *img, uint64_t vaddr, uint64_t *ret);

/* Where a word that the loader fills with a thread-local offset (x86: TPOFF64) points to, within
 * the thread-local block. Returns false if it is none. */
bool go_image_tls_slot(const struct go_image *img, uint64_t vaddr, uint64_t *ret);

/* Called for every aligned word that is loaded from the file, code last; @w[0] to @w[GO_LOOK - 1]
 * can be read. Returns true to end the scan. */
typedef bool go_scan_fn(void *ctx, uint64_t vaddr, const uint64_t *w);

/* Returns 0, 1 if @fn ended it, or -ENOMEM. */
CC_NODISCARD int go_image_scan(const struct go_image *img, go_scan_fn *fn, void *ctx);

#endif
