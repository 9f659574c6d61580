// SPDX-License-Identifier: GPL-2.0-only
/* go_chan: probes where something is copied into a channel's buffer or out of it. */
#include "go_item.h"

char LICENSE[] SEC("license") = "GPL";

#define CASES 16 /* of a select, that are looked at */

static __always_inline bool is_place(const struct go_chan *c, __u64 at)
{
	return at >= c->at && at < c->end;
}

static __always_inline void moved(const struct go_here *h, __u64 c, __u64 place, __u16 what)
{
	struct go_words w;
	struct go_item x = { .what = what,
			     .how = what == ITEM_SENT ? ITEM_PLACE : ITEM_PLACE | ITEM_EXACT,
			     .goid = go_current(h, &w),
			     .chan = c,
			     .at = place };

	go_item_send(h, &x);
}

/* A compiled function keeps its first argument above its frame, where its caller left room. */
static __always_inline __u64 first_argument(struct pt_regs *ctx)
{
	return go_read(REGS_BP(ctx), 16);
}

/* In chansend: typedmemmove(type, place, item). */
SEC("uprobe")
int go_put(struct pt_regs *ctx)
{
	__u64 c = first_argument(ctx);
	struct go_chan b;
	struct go_here h;

	if (go_here(&h, ctx, CC_BPF_GO_AT_PUT) && go_chan_read(h.go, c, &b) &&
	    is_place(&b, GO_ARG1(ctx)))
		moved(&h, c, GO_ARG1(ctx), ITEM_SENT);
	return 0;
}

/* In chanrecv: typedmemmove(type, item, place). */
SEC("uprobe")
int go_take(struct pt_regs *ctx)
{
	__u64 c = first_argument(ctx);
	struct go_chan b;
	struct go_here h;

	if (go_here(&h, ctx, CC_BPF_GO_AT_TAKE) && go_chan_read(h.go, c, &b) &&
	    is_place(&b, GO_ARG2(ctx)))
		moved(&h, c, GO_ARG2(ctx), ITEM_RECEIVED);
	return 0;
}

/* In selectgo, at two places: either of both. Which channel it is tells the case that has the item.
 */
SEC("uprobe")
int go_select(struct pt_regs *ctx)
{
	__u64 cases = first_argument(ctx), to = GO_ARG1(ctx), from = GO_ARG2(ctx);
	struct go_chan b;
	struct go_here h;

	if (!go_here(&h, ctx, CC_BPF_GO_AT_SELECT0))
		return 0;
	for (__u32 i = 0; i < CASES; i++) {
		__u64 v[2] = {}; /* scase: channel, item */

		if (bpf_probe_read_user(v, sizeof(v), (void *)(cases + i * sizeof(v))))
			break;
		if (!v[0] || (v[1] != to && v[1] != from) || !go_chan_read(h.go, v[0], &b))
			continue;
		if (v[1] == to ? is_place(&b, from) : is_place(&b, to)) {
			moved(&h, v[0], v[1] == to ? from : to,
			      v[1] == to ? ITEM_RECEIVED : ITEM_SENT);
			break;
		}
	}
	return 0;
}

/* In recv(c, sg, ...), the running goroutine takes from sg.g, which waits: typedmemmove(type,
 * place, item of sg.g). The buffer is full, so it got the item at its head, whose place that of
 * sg.g gets.
 */
SEC("uprobe")
int go_pass(struct pt_regs *ctx)
{
	__u64 c = first_argument(ctx), sg = go_read(REGS_BP(ctx), 24), gp;
	struct go_item x = { .what = ITEM_SENT, .how = ITEM_PLACE, .chan = c };
	struct go_chan b;
	struct go_here h;

	if (!go_here(&h, ctx, CC_BPF_GO_AT_PASS) || !go_chan_read(h.go, c, &b) ||
	    !is_place(&b, GO_ARG1(ctx)))
		return 0;
	moved(&h, c, GO_ARG1(ctx), ITEM_RECEIVED);
	gp = go_read(sg, h.go->at.sudog_g);
	x.goid = go_read(gp, h.go->at.g_goid);
	x.at = GO_ARG1(ctx);
	go_item_send(&h, &x);
	return 0;
}
