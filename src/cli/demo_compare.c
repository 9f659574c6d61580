// SPDX-License-Identifier: Apache-2.0
#include "demo_compare.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum culprit { CULPRIT_HOLDER, CULPRIT_REQUEST, CULPRIT_PEER, CULPRIT_OCCUPANT, CULPRIT_NOBODY };

#define BIT(cls) (1ull << WAIT_##cls)
#define DISKS (BIT(DISK) | BIT(DISK_WRITE) | BIT(FSYNC) | BIT(JOURNAL))

static const struct expectation {
	uint64_t classes, roots; /* sets of enum wait_class; roots 0: any */
	enum culprit culprit;
	bool many; /* what it comes down to is waits of several kinds, which are summed apart: the
		    * largest of all may be another's */
	const char *text;
} expectations[DEMO_CAUSE_CNT] = {
	[DEMO_LOCK] = { BIT(LOCK), DISKS, CULPRIT_HOLDER, true,
			"lock > disk, held by the one that syncs" },
	[DEMO_BARGE] = { BIT(LOCK), BIT(SLEEP), CULPRIT_HOLDER, false,
			 "lock > sleep, each holder named" },
	[DEMO_POOL] = { BIT(QUEUED), 0, CULPRIT_REQUEST, false,
			"queued, behind the request served" },
	[DEMO_UPSTREAM] = { BIT(UPSTREAM) | BIT(NET_RECV), 0, CULPRIT_PEER, false,
			    "upstream, by its port" },
	[DEMO_FSYNC] = { DISKS, 0, CULPRIT_NOBODY, true, "disk, nobody to blame" },
	[DEMO_SLEEP] = { BIT(SLEEP), 0, CULPRIT_NOBODY, false, "sleep, its own" },
	[DEMO_CPU] = { BIT(CPU), 0, CULPRIT_NOBODY, false, "cpu, its own" },
	[DEMO_HOG] = { BIT(RUNQ), 0, CULPRIT_OCCUPANT, false, "runq, behind the hog" },
	[DEMO_HOL] = { BIT(HOL), 0, CULPRIT_REQUEST, false, "hol, behind the slow request" },
	[DEMO_CLIENT] = { BIT(NET_SEND), 0, CULPRIT_PEER, false, "net send, to this client" },
};

const char *demo_expectation(enum demo_cause cause) { return expectations[cause].text; }

bool demo_score_ok(const struct demo_score *s)
{
	uint64_t need = (uint64_t)s->requests * 95;
	return s->requests >= DEMO_REQUESTS_MIN && (uint64_t)s->class_right * 100 >= need &&
	       (uint64_t)s->culprit_right * 100 >= need && s->lost <= s->requests / 5 &&
	       s->inexact == 0;
}

/* ---- finding things ---- */

struct judge {
	const struct demo_shared *log;
	const struct snapshot *s;
	const struct snap_request **by_conn, **by_id; /* sorted */
	const struct demo_hold **hold;                /* by cause, then start */
	size_t hold_cnt, first_hold[DEMO_CAUSE_CNT + 1];
	cc_ns longest[DEMO_CAUSE_CNT]; /* hold of that cause */
	struct demo_listener each;
};

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

static int cmp_conn(const void *a, const void *b)
{
	const struct snap_request *x = *(const struct snap_request *const *)a;
	const struct snap_request *y = *(const struct snap_request *const *)b;
	int c = COMPARE(x->rec.local_port, y->rec.local_port);
	c = c ? c : COMPARE(x->rec.peer.port, y->rec.peer.port);
	return c ? c : COMPARE(x->id.ordinal, y->id.ordinal);
}

static int cmp_id(const void *a, const void *b)
{
	const struct snap_request *x = *(const struct snap_request *const *)a;
	const struct snap_request *y = *(const struct snap_request *const *)b;
	int c = COMPARE(x->id.kind, y->id.kind);
	c = c ? c : COMPARE(x->id.id, y->id.id);
	return c ? c : COMPARE(x->id.ordinal, y->id.ordinal);
}

static int cmp_hold(const void *a, const void *b)
{
	const struct demo_hold *x = *(const struct demo_hold *const *)a;
	const struct demo_hold *y = *(const struct demo_hold *const *)b;
	int c = COMPARE(x->cause, y->cause);
	return c ? c : COMPARE(x->start, y->start);
}

static void judge_done(struct judge *j)
{
	free(j->by_conn);
	free(j->by_id);
	free(j->hold);
}

static void index_holds(struct judge *j, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		const struct demo_hold *h = &j->log->hold[i];
		if (!atomic_load(&h->ready) || h->cause >= DEMO_CAUSE_CNT)
			continue;
		j->hold[j->hold_cnt++] = h;
		j->longest[h->cause] = CC_MAX(j->longest[h->cause], h->end - h->start);
	}
	qsort(j->hold, j->hold_cnt, sizeof(*j->hold), cmp_hold);
	for (size_t i = 0, cause = 0; cause <= DEMO_CAUSE_CNT; cause++) {
		while (i < j->hold_cnt && j->hold[i]->cause < cause)
			i++;
		j->first_hold[cause] = i;
	}
}

static int judge_init(struct judge *j, const struct demo_shared *log, const struct snapshot *s)
{
	size_t holds = atomic_load(&log->hold_cnt), n = s->request_cnt;
	*j = (struct judge){ .log = log, .s = s };
	j->by_conn = calloc(n + 1, sizeof(*j->by_conn));
	j->by_id = calloc(n + 1, sizeof(*j->by_id));
	j->hold = calloc(holds + 1, sizeof(*j->hold));
	if (!j->by_conn || !j->by_id || !j->hold) {
		judge_done(j);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++)
		j->by_conn[i] = j->by_id[i] = &s->requests[i];
	qsort(j->by_conn, n, sizeof(*j->by_conn), cmp_conn);
	qsort(j->by_id, n, sizeof(*j->by_id), cmp_id);
	index_holds(j, holds);
	return 0;
}

static const struct snap_request *find_request(const struct snap_request **sorted, size_t n,
					       const struct snap_request *key,
					       int (*cmp)(const void *, const void *))
{
	const struct snap_request **hit = bsearch(&key, sorted, n, sizeof(*sorted), cmp);
	return hit ? *hit : NULL;
}

static const struct snap_request *find_row(const struct judge *j, const struct demo_req *r)
{
	struct snap_request key = { .id.ordinal = r->ordinal };
	key.rec.local_port = r->local_port;
	key.rec.peer.port = r->peer_port;
	return find_request(j->by_conn, j->s->request_cnt, &key, cmp_conn);
}

/* Index of the first hold of @cause that may reach beyond @from. */
static size_t hold_from(const struct judge *j, int cause, cc_ns from)
{
	size_t lo = j->first_hold[cause], hi = j->first_hold[cause + 1];
	cc_ns start = from > j->longest[cause] ? from - j->longest[cause] : 0;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (j->hold[mid]->start < start)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static cc_ns overlap(const struct demo_hold *h, cc_ns start, cc_ns end)
{
	cc_ns lo = CC_MAX(h->start, start), hi = CC_MIN(h->end, end);
	return hi > lo ? hi - lo : 0;
}

#define FOR_EACH_HOLD(j, h, cause, from, to)        \
	for (size_t i_ = hold_from(j, cause, from); \
	     i_ < (j)->first_hold[(cause) + 1] && ((h) = (j)->hold[i_])->start < (to); i_++)

/* ---- judging one request ---- */

struct votes { /* ns of the wait */
	cc_ns right, wrong;
};

static void vote(struct votes *v, bool right, cc_ns ns) { *(right ? &v->right : &v->wrong) += ns; }

/* Whoever had the lock at each moment is who must be named for that moment; until the one that is
 * named ran, as is said beneath, nobody is said to have had it. */
static void vote_holder(const struct judge *j, const struct demo_req *r, const struct snap_piece *p,
			const struct snap_piece *end, struct votes *v)
{
	const struct cc_piece *first = p + 1 < end ? &p[1].p : &p->p;
	bool passed = first->depth > p->p.depth && first->cls == WAIT_LOCK_HANDOFF;
	cc_ns from = passed ? first->end : p->p.start;
	const struct demo_hold *h;
	FOR_EACH_HOLD(j, h, r->cause, from, p->p.end)
	if (h->tid != r->tid)
		vote(v, h->tid == p->p.holder_tid, overlap(h, from, p->p.end));
}

/* In the way is the request whose end let this one go on: of those that the thread which answered
 * this one served during the wait, the last. */
static void vote_request(const struct judge *j, const struct demo_req *r,
			 const struct snap_piece *p, struct votes *v)
{
	struct snap_request key = { .id = p->p.by_request };
	const struct snap_request *by = find_request(j->by_id, j->s->request_cnt, &key, cmp_id);
	const struct demo_hold *h, *last = NULL;
	FOR_EACH_HOLD(j, h, r->cause, p->p.start, p->p.end)
	{
		if (h->tid == r->tid && overlap(h, p->p.start, p->p.end) &&
		    !(h->peer_port == r->peer_port && h->ordinal == r->ordinal))
			last = h;
	}
	if (last)
		vote(v,
		     by && by->rec.local_port == r->local_port &&
			     by->rec.peer.port == last->peer_port &&
			     by->id.ordinal == last->ordinal,
		     p->p.end - p->p.start);
}

static bool names_port(const char *text, uint16_t port)
{
	const char *colon = strrchr(text, ':');
	char *end;
	return colon && strtoul(colon + 1, &end, 10) == port && end > colon + 1 && !*end;
}

static void vote_peer(const struct judge *j, const struct demo_req *r, const struct snap_piece *p,
		      struct votes *v)
{
	bool up = r->cause == DEMO_UPSTREAM;
	uint16_t port = up ? j->log->upstream_port : r->peer_port;
	int pid = atomic_load(up ? &j->log->upstream_pid : &j->log->load_pid);
	bool named = names_port(snapshot_str(j->s, p->resource), port);
	bool woke = p->p.waker_kind == CC_WAKER_TASK;
	/* a task that is named as well has to be the peer's */
	vote(v, woke ? p->p.waker_tgid == (uint32_t)pid : named, p->p.end - p->p.start);
}

/* The hog is to be named where its own log says that it had most of that time. */
static void vote_occupant(const struct judge *j, const struct demo_req *r,
			  const struct snap_piece *p, struct votes *v)
{
	cc_ns had = 0, len = p->p.end - p->p.start;
	const struct demo_hold *h;
	FOR_EACH_HOLD(j, h, r->cause, p->p.start, p->p.end)
	had += overlap(h, p->p.start, p->p.end);
	if (had > len / 2)
		vote(v, p->p.occupant_tid == (uint32_t)atomic_load(&j->log->hog_pid), len);
}

static void vote_nobody(const struct demo_req *r, const struct snap_piece *p, struct votes *v)
{
	bool own = p->p.tid == r->tid && !p->p.holder_tid &&
		   p->p.by_request.kind == CC_REQID_NONE && p->p.waker_kind != CC_WAKER_TASK;
	vote(v, own, p->p.end - p->p.start);
}

static struct votes culprit_votes(const struct judge *j, const struct demo_req *r,
				  const struct snap_request *row)
{
	const struct expectation *e = &expectations[r->cause];
	const struct snap_piece *p = &j->s->pieces[row->first_piece], *end = p + row->piece_cnt;
	struct votes v = { 0 };
	for (; p < end; p++) {
		if (p->p.depth || !(e->classes >> p->p.cls & 1))
			continue;
		switch (e->culprit) {
		case CULPRIT_HOLDER:
			vote_holder(j, r, p, end, &v);
			break;
		case CULPRIT_REQUEST:
			vote_request(j, r, p, &v);
			break;
		case CULPRIT_PEER:
			vote_peer(j, r, p, &v);
			break;
		case CULPRIT_OCCUPANT:
			vote_occupant(j, r, p, &v);
			break;
		case CULPRIT_NOBODY:
			vote_nobody(r, p, &v);
			break;
		}
	}
	return v;
}

static cc_ns beyond(cc_ns a, cc_ns b) { return a > b ? a - b : 0; }

/* ns of @set, and whether no other class has more. */
static cc_ns sum_of(const cc_ns ns[WAIT_CLASS_CNT], uint64_t set, bool *ret_most)
{
	cc_ns sum = 0, other = 0;
	for (unsigned int c = 0; c < WAIT_CLASS_CNT; c++) {
		if (set >> c & 1)
			sum += ns[c];
		else
			other = CC_MAX(other, ns[c]);
	}
	*ret_most = sum > other;
	return sum;
}

/* What is said of those who were waited for: the deepest pieces. */
static void sum_beneath(const struct judge *j, const struct snap_request *row,
			cc_ns ret[WAIT_CLASS_CNT])
{
	const struct snap_piece *p = &j->s->pieces[row->first_piece];
	memset(ret, 0, sizeof(*ret) * WAIT_CLASS_CNT);
	for (uint32_t i = 0; i < row->piece_cnt; i++) {
		bool deeper = i + 1 < row->piece_cnt && p[i + 1].p.depth > p[i].p.depth;
		if (p[i].p.depth && !deeper && p[i].p.cls < WAIT_CLASS_CNT)
			ret[p[i].p.cls] += p[i].p.end - p[i].p.start;
	}
}

static bool root_right(const struct judge *j, const struct expectation *e,
		       const struct snap_request *row)
{
	cc_ns beneath[WAIT_CLASS_CNT];
	bool most;
	if (!e->roots || e->roots >> row->root.cls & 1)
		return true;
	sum_beneath(j, row, beneath);
	sum_of(beneath, e->roots, &most);
	return e->many && most;
}

/* Class by class, and as long as the log says: within 1 ms + 10 %; @late: of the log's, may be its
 * thread's time in the run queue. Behind the hog all is that is not on a CPU. */
static bool class_right(const struct judge *j, const struct demo_req *r,
			const struct snap_request *row, cc_ns late)
{
	const struct expectation *e = &expectations[r->cause];
	cc_ns slack = CC_MS(1) + r->wait_ns / 10, ns;
	cc_ns more = r->cause == DEMO_HOG ? beyond(r->end - r->sent, r->wait_ns + r->cpu_ns) : 0;
	bool most;
	ns = sum_of(row->class_ns, e->classes, &most);
	most = (e->classes >> row->dominant.cls & 1) || (e->many && !e->roots && most);
	return row->path_ok && most && ns <= r->wait_ns + more + slack &&
	       ns + late + slack >= r->wait_ns && root_right(j, e, row);
}

/* The depth-0 pieces follow each other without gap or overlap from start to end, and the sum that
 * is shown is theirs. */
static bool sums_exactly(const struct snapshot *s, const struct snap_request *row)
{
	const struct snap_piece *p = &s->pieces[row->first_piece];
	cc_ns at = row->start;
	for (uint32_t i = 0; i < row->piece_cnt; i++) {
		if (p[i].p.depth)
			continue;
		if (p[i].p.start != at || p[i].p.end < at)
			return false;
		at = p[i].p.end;
	}
	return at == row->end && row->path_sum_ns == row->end - row->start &&
	       row->latency_ns == row->path_sum_ns;
}

/* @ns is larger than @other by more than measuring can hide. */
static bool outweighs(cc_ns ns, cc_ns other) { return ns * 2 >= other * 3; }

/* ns of run queue in the wait that the kernel's account of the thread, and so the log, does not
 * have: it begins when the thread is queued, and another CPU that is told to do so may take long,
 * in a guest above all. To the log that is time off the CPU. */
static cc_ns woken_late(const struct judge *j, const struct demo_req *r,
			const struct snap_request *row)
{
	const struct snap_piece *p = row ? &j->s->pieces[row->first_piece] : NULL;
	cc_ns runq = 0;
	if (!row || r->cause == DEMO_CPU || r->cause == DEMO_HOG) /* these wait for nothing */
		return 0;
	for (uint32_t i = 0; i < row->piece_cnt; i++, p++)
		if (!p->p.depth && p->p.cls == WAIT_RUNQ)
			runq += beyond(CC_MIN(p->p.end, r->wait_end),
				       CC_MAX(p->p.start, r->wait_start));
	return beyond(runq, r->wait_runq_ns);
}

/* Whether those who were waited for were themselves kept by what they shall be blamed for, and not
 * by a busy machine: that is also who was woken to have it next, while nobody has it. */
static bool holders_blocked(const struct judge *j, const struct demo_req *r,
			    const struct snap_request *row)
{
	cc_ns had = 0, beneath[WAIT_CLASS_CNT] = { 0 };
	double off = 0, cpu = 0, runq = 0, late;
	const struct demo_hold *h;
	FOR_EACH_HOLD(j, h, r->cause, r->wait_start, r->wait_end)
	{
		cc_ns of = overlap(h, r->wait_start, r->wait_end);
		double share = (double)of / (double)CC_MAX(h->end - h->start, 1);
		had += of;
		off += share * (double)h->off_ns;
		cpu += share * (double)h->cpu_ns;
		runq += share * (double)h->runq_ns;
	}
	if (row)
		sum_beneath(j, row, beneath);
	late = CC_MAX((double)beneath[WAIT_RUNQ] - runq, 0.0);
	runq += late + (double)beyond(r->wait_end - r->wait_start, had);
	return outweighs((cc_ns)CC_MAX(off - late, 0.0), (cc_ns)CC_MAX(cpu, runq));
}

/* Whether by the log itself the cause, and nothing else, took most of this request. */
static bool is_clear(const struct judge *j, const struct demo_req *r,
		     const struct snap_request *row, cc_ns late)
{
	cc_ns cpu = r->cause == DEMO_CPU ? 0 : r->cpu_ns;
	cc_ns runq = r->cause == DEMO_HOG ? 0 : r->runq_ns + late;
	cc_ns wait = beyond(r->wait_ns, late);
	cc_ns rest = beyond(r->end - r->sent, wait + cpu + runq);
	if (!outweighs(wait, CC_MAX(cpu, runq) + rest)) /* which may be of the same kind */
		return false;
	return expectations[r->cause].culprit != CULPRIT_HOLDER || holders_blocked(j, r, row);
}

static void judge_request(const struct judge *j, const struct demo_req *r, struct demo_score *sc)
{
	const struct snap_request *row = find_row(j, r);
	if (row && !sums_exactly(j->s, row))
		sc->inexact++;
	if (!r->judged)
		return;
	cc_ns late = woken_late(j, r, row);
	struct votes v = row ? culprit_votes(j, r, row) : (struct votes){ 0 };
	bool no_say = row && expectations[r->cause].culprit == CULPRIT_OCCUPANT && !v.right &&
		      !v.wrong && class_right(j, r, row, late);
	if (!is_clear(j, r, row, late) ||
	    no_say) { /* right, but another than the hog was in the way */
		sc->unclear++;
		return;
	}
	bool cls = row && class_right(j, r, row, late);
	bool who = row && v.right && v.right * 100 >= (v.right + v.wrong) * 95;
	if (row && j->each.tell)
		j->each.tell(j->each.arg, &(struct demo_verdict){ .row = row,
								  .cause = r->cause,
								  .class_right = cls,
								  .culprit_right = who });
	if (row && !(cls && who) && row->lost_inside && row->confidence < 90) {
		sc->lost++; /* it does not claim to know */
		return;
	}
	sc->requests++;
	sc->missing += !row;
	sc->class_right += cls;
	sc->culprit_right += who;
	if (row && row->confidence >= 90) {
		sc->high++;
		sc->high_right += cls && who;
	}
	if (row && !(cls && who) && sc->wrong_id.kind == CC_REQID_NONE)
		sc->wrong_id = row->id;
}

uint32_t demo_clear_cnt(const struct demo_shared *log, enum demo_cause cause)
{
	size_t n = CC_MIN(atomic_load(&log->req_cnt), DEMO_REQS_MAX);
	const struct snapshot none = { 0 };
	uint32_t cnt = 0;
	struct judge j;
	if (atomic_load(&log->hold_cnt) > DEMO_HOLDS_MAX || judge_init(&j, log, &none))
		return 0;
	for (size_t i = 0; i < n; i++) {
		const struct demo_req *r = &log->req[i];
		cnt += atomic_load(&r->ready) && r->judged && r->cause == cause &&
		       is_clear(&j, r, NULL, 0);
	}
	judge_done(&j);
	return cnt;
}

int demo_compare(const struct demo_shared *log, const struct snapshot *s, struct demo_listener each,
		 struct demo_score ret[DEMO_CAUSE_CNT])
{
	size_t n = atomic_load(&log->req_cnt);
	if (n > DEMO_REQS_MAX || atomic_load(&log->hold_cnt) > DEMO_HOLDS_MAX)
		return -EOVERFLOW;
	struct judge j;
	int err = judge_init(&j, log, s);
	if (err)
		return err;
	j.each = each;
	memset(ret, 0, sizeof(*ret) * DEMO_CAUSE_CNT);
	for (size_t i = 0; i < n; i++) {
		const struct demo_req *r = &log->req[i];
		if (atomic_load(&r->ready) && r->cause < DEMO_CAUSE_CNT)
			judge_request(&j, r, &ret[r->cause]);
	}
	judge_done(&j);
	return 0;
}
