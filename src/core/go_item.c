/* SPDX-License-Identifier: Apache-2.0 */
/* What goes through channels: from whom to whom. An item is work when some put in and others take
 * out; a channel out of which a goroutine takes what it (or its like) puts back passes resources,
 * a pool of connections, and says nothing of whose work is done. */
#include <errno.h>
#include <string.h>

#include "task.h"

#define SENT_MAX (1u << 16) /* items kept that were not seen to be received: a ring */
#define SENT_TTL CC_S(10)   /* then the channel's memory may be another one's */
#define LOOK_BACK 64u       /* items received before, looked at for a channel */

enum { ITEM_SENT = 1, ITEM_RECEIVED = 2 };
enum { ITEM_EXACT = 1, ITEM_PEEK = 2, ITEM_PLACE = 4 };

static uint64_t channel_key(uint32_t tgid, uint64_t channel) { return map_mix2(channel, tgid); }

enum go_channel go_channel_kind(const struct tasks *ts, uint32_t tgid, uint64_t channel)
{
	return (enum go_channel)map_get(&ts->go.channels, channel_key(tgid, channel));
}

const struct go_recv *go_took(const struct tasks *ts, const struct task *t, uint64_t channel,
			      cc_ns to)
{
	const struct go_state *g = task_go(ts, t);
	uint32_t i = g ? vec_lower_bound(&g->got, t, to + 1) : 0;

	for (uint32_t n = 0; i-- > 0 && n < LOOK_BACK; n++)
		if (g->got.p[i].channel == channel)
			return &g->got.p[i];
	return NULL;
}

static int is_resource(struct tasks *ts, uint32_t tgid, uint64_t channel)
{
	if (go_channel_kind(ts, tgid, channel) != GO_CHAN_WORK)
		return 0;
	return map_put(ts->mem, &ts->go.channels, channel_key(tgid, channel), GO_CHAN_RESOURCE);
}

/* One more or less have something out of a channel of resources. Those who had before that was
 * known are not counted. */
static int count_had(struct tasks *ts, uint32_t tgid, uint64_t channel, int by)
{
	uint64_t key = channel_key(tgid, channel);
	uint32_t cnt = map_get(&ts->go.had, key);
	int err;

	cnt = (cnt ? cnt : 1) + (uint32_t)by;
	err = map_put(ts->mem, &ts->go.had, key, cnt);
	if (!err && cnt > 2)
		err = map_put(ts->mem, &ts->go.channels, key, GO_CHAN_SEVERAL);
	return err;
}

static struct go_put *put_find(struct go_state *g, uint64_t channel)
{
	for (uint32_t i = 0; i < GO_PUT_CNT; i++)
		if (g->put[i].channel == channel)
			return &g->put[i];
	return NULL;
}

/* @t put something into a channel; maybe it took something out of it before. */
static int learn_put(struct tasks *ts, const struct task *t, uint64_t channel, cc_ns at)
{
	const struct go_recv *took = go_took(ts, t, channel, at);
	struct go_state *g = task_go(ts, t);
	struct go_put *put = put_find(g, channel);
	cc_ns before = put ? put->t : 0;

	if (!put) {
		put = &g->put[g->put_at++ % GO_PUT_CNT];
		put->channel = channel;
	}
	put->t = at;
	if (!took)
		return 0;
	if (took->counted && took->t > before)
		return count_had(ts, t->tgid, channel, -1);
	return is_resource(ts, t->tgid, channel);
}

/* It took something out; maybe it put something in before. */
static int learn_got(struct tasks *ts, const struct task *t, uint64_t channel)
{
	return put_find(task_go(ts, t), channel) ? is_resource(ts, t->tgid, channel) : 0;
}

static uint64_t sent_key(const struct cc_rec_go_item *r)
{
	return map_mix2(map_mix2(r->channel, r->item), r->tgid);
}

static struct go_sent *sent_find(struct tasks *ts, const struct cc_rec_go_item *r)
{
	uint32_t i = map_get(&ts->go.by_sent, sent_key(r));
	struct go_sent *s = i ? &ts->go.sent.p[i - 1] : NULL;

	if (!s || s->channel != r->channel || s->item != r->item || s->tgid != r->tgid)
		return NULL;
	return s;
}

static void sent_forget(struct tasks *ts, struct go_sent *s)
{
	uint64_t key = map_mix2(map_mix2(s->channel, s->item), s->tgid);

	if (map_get(&ts->go.by_sent, key) == (uint32_t)(s - ts->go.sent.p) + 1)
		map_del(&ts->go.by_sent, key);
	*s = (struct go_sent){ 0 };
}

/* It will lie in the channel's buffer until somebody takes it. */
static int put_into(struct tasks *ts, const struct cc_rec_go_item *r, uint32_t from)
{
	struct go_tasks *g = &ts->go;
	struct go_sent *s = sent_find(ts, r);

	if (s && !(r->h.flags & ITEM_PLACE) && r->h.ts - s->t < SENT_TTL && r->h.ts >= s->t) {
		s->twice = true;
		s->t = r->h.ts;
		return 0;
	}
	if (s)
		sent_forget(ts, s);
	if (g->sent.cnt < SENT_MAX) {
		if (vec_reserve(ts->mem, &g->sent, g->sent.cnt + 1))
			return -ENOMEM;
		g->sent_at = g->sent.cnt++;
	} else {
		g->sent_at = (g->sent_at + 1) % SENT_MAX;
		sent_forget(ts, &g->sent.p[g->sent_at]);
	}
	g->sent.p[g->sent_at] = (struct go_sent){
		.channel = r->channel,
		.item = r->item,
		.t = r->h.ts,
		.tgid = r->tgid,
		.from = ts->v.p[from].tid,
	};
	return map_put(ts->mem, &g->by_sent, sent_key(r), g->sent_at + 1);
}

static int received(struct tasks *ts, uint32_t by, struct go_recv got)
{
	struct task *t = &ts->v.p[by];
	struct go_state *g = task_go(ts, t);
	uint32_t i;

	if (vec_reserve(ts->mem, &g->got, g->got.cnt + 1))
		return -ENOMEM;
	i = vec_lower_bound(&g->got, t, got.t);
	for (uint32_t j = i; j < g->got.cnt && g->got.p[j].t == got.t; j++)
		if (g->got.p[j].channel == got.channel)
			return 0; /* told from both sides */
	got.counted = go_channel_kind(ts, t->tgid, got.channel) != GO_CHAN_WORK;
	memmove(&g->got.p[i + 1], &g->got.p[i], (g->got.cnt - i) * sizeof(got));
	g->got.p[i] = got;
	g->got.cnt++;
	return got.counted ? count_had(ts, t->tgid, got.channel, 1) : 0;
}

/* Taken out of a buffer: whose it was the item tells, if only one such was there. */
static int taken(struct tasks *ts, const struct cc_rec_go_item *r, uint32_t by)
{
	struct go_recv got = {
		.t = r->h.ts,
		.channel = r->channel,
		.from = 0,
		.how = r->h.flags & ITEM_PEEK ? GO_HOW_PEEKED : GO_HOW_EXACT,
	};
	struct go_sent *s = r->item ? sent_find(ts, r) : NULL;

	if (s && !s->twice && r->h.ts >= s->t && r->h.ts - s->t < SENT_TTL) {
		got.from = s->from;
		got.sent = s->t;
		sent_forget(ts, s);
	}
	return received(ts, by, got);
}

int go_item(struct tasks *ts, const struct cc_rec_go_item *r)
{
	bool full = false, sent = r->h.aux == ITEM_SENT;
	struct task *t, *peer = NULL;
	struct go_recv got;
	uint32_t ti, pi = 0;
	int err;

	if (!r->tgid || !r->goid || !r->h.ts || !r->channel || (!sent && r->h.aux != ITEM_RECEIVED))
		return -EINVAL;
	t = go_get(ts, r->tgid, r->goid, &full);
	if (!t)
		return full ? 0 : -ENOMEM;
	ti = (uint32_t)(t - ts->v.p);
	t->alive = CC_MAX(t->alive, r->h.ts);
	if (r->peer_goid && r->peer_goid != r->goid) {
		peer = go_get(ts, r->tgid, r->peer_goid, &full);
		if (!peer)
			return full ? 0 : -ENOMEM;
		pi = (uint32_t)(peer - ts->v.p);
		t = &ts->v.p[ti];
	}
	if (!peer && sent)
		return learn_put(ts, t, r->channel, r->h.ts) ?: put_into(ts, r, ti);
	if (!peer)
		return learn_got(ts, t, r->channel) ?: taken(ts, r, ti);
	err = learn_put(ts, sent ? t : peer, r->channel, r->h.ts)
		      ?: learn_got(ts, sent ? peer : t, r->channel);
	if (err)
		return err;
	got = (struct go_recv){
		.t = r->h.ts,
		.channel = r->channel,
		.sent = r->h.ts,
		/* a signal without content says that something is to do, not what */
		.from = !r->item ? 0
			: sent   ? t->tid
				 : peer->tid,
		.how = r->h.flags & ITEM_PEEK ? GO_HOW_PEEKED : GO_HOW_EXACT,
	};
	return received(ts, sent ? pi : ti, got);
}
