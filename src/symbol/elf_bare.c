/* SPDX-License-Identifier: Apache-2.0 */
/* .eh_frame of a file without section headers. */
#include "elf_load.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BARE_MAX (64u << 20) /* bytes: what a segment has beyond it is not read */
#define HDR_BYTES 16

/* The CIE that gcc and clang write first, from its id on; its length lies before. */
static const uint8_t usual_cie[] = { 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b };

/* The part of segment @s from @at on. NULL: it cannot be read; the caller frees it. */
static uint8_t *read_part(struct elf_file *f, const struct elf_seg *s, uint64_t at, size_t *ret_len)
{
	size_t len = (size_t)CC_MIN(s->filesz - at, BARE_MAX);
	uint8_t *data;
	ssize_t n;

	if (s->off + at >= f->bytes)
		return NULL;
	len = (size_t)CC_MIN(len, f->bytes - s->off - at);
	data = malloc(len);
	n = data ? pread(f->fd, data, len, (off_t)(s->off + at)) : -1;
	if (n <= 0) {
		free(data);
		return NULL;
	}
	*ret_len = (size_t)n;
	return data;
}

/* The linker ends .eh_frame with a 0; what follows is something else. */
static size_t whole_length(const uint8_t *data, size_t len)
{
	size_t at = 0;
	uint32_t entry;

	while (len - at >= sizeof(entry)) {
		memcpy(&entry, data + at, sizeof(entry));
		if (!entry || entry > len - at - sizeof(entry))
			break;
		at += sizeof(entry) + entry;
	}
	return at;
}

static int take_frames(struct elf_file *f, const struct elf_seg *s, uint64_t at,
		       const uint8_t *data, size_t len)
{
	len = whole_length(data, len);
	f->eh_addr = s->vaddr + at;
	f->eh_off = s->off + at;
	f->eh_len = len;
	return ehframe_read(data, len, f->eh_addr, &f->fdes, &f->fde_cnt);
}

static int by_header(struct elf_file *f)
{
	uint8_t hdr[HDR_BYTES];
	const struct elf_seg *s;
	uint64_t addr, at;
	uint8_t *data;
	size_t len;
	int err;

	if (f->eh_hdr.len < HDR_BYTES ||
	    elf_file_read(f, f->eh_hdr.off, hdr, sizeof(hdr)) != sizeof(hdr) ||
	    !ehframe_hdr(hdr, sizeof(hdr), f->eh_hdr.addr, &addr))
		return 0;
	s = elf_file_seg(f, addr);
	at = s ? addr - s->vaddr : 0;
	data = s && at < s->filesz ? read_part(f, s, at, &len) : NULL;
	err = data ? take_frames(f, s, at, data, len) : 0;
	free(data);
	return err;
}

static int by_looks(struct elf_file *f, const struct elf_seg *s)
{
	size_t len = 0, at;
	uint8_t *data = s->filesz ? read_part(f, s, 0, &len) : NULL;
	const uint8_t *found = data;
	int err = 0;

	while (found && !f->fde_cnt && !err) {
		found = memmem(found, len - (size_t)(found - data), usual_cie, sizeof(usual_cie));
		if (!found)
			break;
		at = (size_t)(found - data);
		if (at >= 4) {
			free(f->fdes);
			f->fdes = NULL;
			err = take_frames(f, s, at - 4, data + at - 4, len - at + 4);
		}
		found++;
	}
	free(data);
	return err;
}

int elf_bare_frames(struct elf_file *f)
{
	int err = by_header(f);

	for (size_t i = 0; i < f->seg_cnt && !err && !f->fde_cnt; i++)
		err = by_looks(f, &f->segs[i]);
	return err;
}
