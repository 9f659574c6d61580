/* SPDX-License-Identifier: Apache-2.0 */
/* go_ends: the probe where goroutines end. A server makes one for each request, and that it ended
 * is known anyway when its g is used again; what it does after it was seen last (a few
 * microseconds) is then told as the time of the goroutine that its thread runs next. So the probe
 * is set, and taken away once it has shown that this hardly ever is longer, and that each was seen
 * to run since its last wait, of whose end nothing else would tell; after a while it is set again
 * to see whether that still holds. It stays where goroutines are requests, which end when they do.
 */
#include "go.h"
#include "go_attach.h"
#include "iter.h"

#define SHOWN_NS CC_MS(250) /* it is set at least for so long, and until so many ended: */
#define SHOWN_MIN 50u
#define AWAY_NS CC_S(5)
#define LATE_SHARE 100u     /* fewer than one in so many */
#define HANDLER_NS CC_S(60) /* since one began last */

static void set(struct loader *l, struct go_proc *p, bool on, cc_ns now)
{
	go_attach_ends(l, p, on);
	p->ends.away = !on;
	p->ends.since = now;
	p->ends.first_ended = p->ends.ended;
	p->ends.first_late = p->ends.late;
	p->ends.first_unseen = p->ends.unseen;
}

void go_ends_watch(struct loader *l, struct go_proc *p)
{
	struct go_ends *e = &p->ends;
	cc_ns now = loader_now();
	if (p->tier != LOADER_GO_WAITS || !p->probe_cnt) {
		e->since = 0;
		return;
	}
	if (e->handled > e->last_handled)
		e->handler_at = now;
	e->last_handled = e->handled;
	bool needed = p->target.handler_cnt > GO_HANDLERS_MAX ||
		      (e->handler_at && now - e->handler_at < HANDLER_NS);
	/* a lower count: the kernel side was told anew */
	if (!e->since || e->ended < e->first_ended ||
	    (e->away && (needed || now - e->since >= AWAY_NS))) {
		set(l, p, true, now);
		return;
	}
	uint32_t ended = e->ended - e->first_ended;
	if (e->away || needed || now - e->since < SHOWN_NS || ended < SHOWN_MIN)
		return;
	bool soon = e->unseen == e->first_unseen && (e->late - e->first_late) * LATE_SHARE <= ended;
	set(l, p, !soon, now);
}
