/* SPDX-License-Identifier: Apache-2.0 */
/* table_cache: the sorted tables of large files (elf_file.h), kept on disk from one run to the next
 * in $XDG_CACHE_HOME/criticast: making those of a program of 100 MB takes some 10 ms. Rules of
 * unwinding are not kept: they are made one by one, for what is met.
 *
 * An entry is found by build-id and holds for one file: same device, inode, size and times of
 * change, the last of which nobody can set. A build-id alone would let any program that is traced
 * say what the functions of another are; so only files of root's or ours are kept, none that a user
 * could have mounted, and none without a build-id. The directory must be ours alone, and what lies
 * in it is checked all the same: whatever is not as it should be is as if it were not there. */
#ifndef CC_TABLE_CACHE_H
#define CC_TABLE_CACHE_H

#include "elf_file.h"

struct table_cache;

/* Opens the directory, or makes it. *ret is NULL where there can be none: that is no error.
 * Returns 0 or -ENOMEM. */
CC_NODISCARD int table_cache_new(struct table_cache **ret);
/* The same in @dir, a directory, of at most @max bytes: for tests. Takes @dir. */
CC_NODISCARD int table_cache_at(int dir, uint64_t max, struct table_cache **ret);
void table_cache_free(struct table_cache *c); /* NULL is a no-op */

/* Fills funcs, objects, fdes and where their bytes lie, of a file whose other fields are known.
 * False: there is no such entry. @c: NULL: there is none of any file. */
bool table_cache_get(struct table_cache *c, struct elf_file *f);

/* Keeps them for the next time, if @f is worth it and may be kept. */
void table_cache_put(struct table_cache *c, const struct elf_file *f);

/* Takes the @len bytes of an entry, which are mapped, for @f: they are @f's then. False: they are
 * not what they should be, and stay the caller's. */
bool table_cache_take(struct elf_file *f, void *bytes, size_t len);
/* The bytes of an entry for @f. NULL: no memory. The caller frees them. */
void *table_cache_make(const struct elf_file *f, size_t *ret_len);

#endif
