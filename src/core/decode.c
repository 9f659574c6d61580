/* SPDX-License-Identifier: Apache-2.0 */
#include "decode.h"

#include <errno.h>
#include <string.h>

/* min: the size in ABI version 1, for ever. full: what this build reads. */
struct kind_size {
	uint16_t min, full;
};

static const struct kind_size sizes[CC_REC_KIND_CNT] = {
	[CC_REC_EPISODE] = { 64, sizeof(struct cc_rec_episode) },
	[CC_REC_EXTRA] = { 240, sizeof(struct cc_rec_extra) },
	[CC_REC_SOCKOP] = { 88, sizeof(struct cc_rec_sockop) },
	[CC_REC_REQ] = { 224, sizeof(struct cc_rec_req) },
	[CC_REC_STACK] = { 32, sizeof(struct cc_rec_stack) },
	[CC_REC_SAMPLE] = { 48, sizeof(struct cc_rec_sample) },
	[CC_REC_TASK] = { 72, sizeof(struct cc_rec_task) },
	[CC_REC_OPEN_TASK] = { 200, sizeof(struct cc_rec_open_task) },
	[CC_REC_OPEN_REQ] = { 224, sizeof(struct cc_rec_req) },
	[CC_REC_LOSS] = { 48, sizeof(struct cc_rec_loss) },
	[CC_REC_TICK] = { 48, sizeof(struct cc_rec_tick) },
	[CC_REC_MODULE] = { 88, sizeof(struct cc_rec_module) },
	[CC_REC_NAME] = { 40, sizeof(struct cc_rec_name) },
	[CC_REC_SHORT] = { 40, sizeof(struct cc_rec_short) },
	[CC_REC_TARGET] = { 48, sizeof(struct cc_rec_target) },
	[CC_REC_OPTION] = { 24, sizeof(struct cc_rec_counter) },
	[CC_REC_COUNTER] = { 24, sizeof(struct cc_rec_counter) },
	[CC_REC_GO_EPISODE] = { 88, sizeof(struct cc_rec_go_episode) },
	[CC_REC_GO_TASK] = { 56, sizeof(struct cc_rec_go_task) },
	[CC_REC_GO_ON] = { 32, sizeof(struct cc_rec_go_on) },
	[CC_REC_GO_ITEM] = { 56, sizeof(struct cc_rec_go_item) },
	[CC_REC_LISTEN] = { 40, sizeof(struct cc_rec_listen) },
	[CC_REC_WAKE] = { 32, sizeof(struct cc_rec_wake) },
};

/* Bytes that the record's own counts ask for; more than a record can have is simply too much. */
static size_t wanted_size(const struct cc_rec *r)
{
	switch (r->kind) {
	case CC_REC_STACK:
		if (r->aux > CC_STACK_MAX)
			return SIZE_MAX;
		return sizeof(struct cc_rec_stack) + r->aux * sizeof(uint64_t);
	case CC_REC_MODULE: {
		const struct cc_rec_module *m = (const void *)r;

		if (m->build_id_len > sizeof(m->build_id))
			return SIZE_MAX;
		return sizeof(*m) + m->path_len;
	}
	case CC_REC_NAME: {
		const struct cc_rec_name *n = (const void *)r;

		return sizeof(*n) + n->len[0] + n->len[1];
	}
	default:
		return 0;
	}
}

size_t decode_size(const struct cc_rec *r) { return CC_MAX(r->size, sizes[r->kind].full); }

uint64_t decode_lost(const struct cc_rec *r)
{
	const struct cc_rec_go_episode *g = (const void *)r;

	switch (r->kind) {
	case CC_REC_EPISODE:
		return CC_LOST_CNT(((const struct cc_rec_episode *)r)->lost);
	case CC_REC_GO_EPISODE: /* what an open one lost, its end tells again */
		return g->h.flags & CC_GE_OPEN ? 0 : CC_LOST_CNT(g->lost);
	case CC_REC_LOSS:
		return ((const struct cc_rec_loss *)r)->cnt;
	default:
		return 0;
	}
}

int decode(const struct cc_rec *rec, size_t len, struct decode_buf *buf, const struct cc_rec **ret)
{
	const struct cc_rec *r = rec;
	struct kind_size s;
	struct cc_rec h;

	if (len < sizeof(h))
		return -EINVAL;
	memcpy(&h, rec, sizeof(h));
	if (h.size < sizeof(h) || h.size > len || h.size % 8 || h.ts > CC_TIME_MAX)
		return -EINVAL;
	if (h.kind == CC_REC_NONE)
		return -EINVAL;
	if (h.kind >= CC_REC_KIND_CNT)
		return -ENOTSUP;
	s = sizes[h.kind];
	if (h.size < s.min)
		return -EINVAL;
	if ((uintptr_t)rec % _Alignof(uint64_t) || h.size < s.full) {
		memcpy(buf->words, rec, h.size);
		if (h.size < s.full)
			memset((char *)buf->words + h.size, 0, s.full - h.size);
		r = (const void *)buf->words;
	}
	if (wanted_size(r) > h.size)
		return -EINVAL;
	*ret = r;
	return 0;
}
