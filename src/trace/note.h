/* SPDX-License-Identifier: Apache-2.0 */
/* note: a line for the user about a file, as a record of its stream (CC_NAME_NOTE). */
#ifndef CC_TRACE_NOTE_H
#define CC_TRACE_NOTE_H

#include <string.h>

#include "base.h"
#include "event.h"

#define NOTE_TEXT_MAX 240

union note {
	struct cc_rec_name rec;
	uint8_t bytes[sizeof(struct cc_rec_name) + NOTE_TEXT_MAX];
};

static inline const struct cc_rec *note_make(union note *n, const char *text, cc_ns ts)
{
	size_t len = CC_MIN(strlen(text), (size_t)NOTE_TEXT_MAX);

	memset(n, 0, sizeof(*n));
	n->rec.h.size = (uint16_t)(sizeof(n->rec) + ((len + 7) & ~(size_t)7));
	n->rec.h.kind = CC_REC_NAME;
	n->rec.h.aux = CC_NAME_NOTE;
	n->rec.h.cpu = UINT16_MAX;
	n->rec.h.ts = ts;
	n->rec.len[0] = (uint16_t)len;
	memcpy(n->bytes + sizeof(n->rec), text, len);
	return &n->rec.h;
}

#endif
