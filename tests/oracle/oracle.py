# SPDX-License-Identifier: Apache-2.0
"""A naive oracle of the path: DESIGN section 5 read literally, slow and plain on purpose.

It takes the records of one trace as dicts (see schedule.py) and answers, for each request or for
any span of a task, with a tree of pieces. It shares no code and no data structure with the engine:
everything is a list that is searched from its start.

Readings of the text that the text leaves open (each is also where a difference would show):
 - o, the latest server-socket operation before t, is looked for at times < t; of two at the same
   time the request's own one wins.
 - A task that hands R over at w held it if its hold ends at or after w.
 - Idle waits are event loops and accept; and a recv or condition variable ("empty queue")
   waited on by a task whose last touched request is over, or that never touched one.
 - A task woken by an interrupt was not woken by the interrupted task: no cut, no hop.
 - Where the task that takes R from a queue is idle meanwhile, R lay elsewhere: ambiguous. So it is
   where that task's last work came from one that answers nobody, or, where nobody gave it any, who had R
   gives work to one that answers nobody: a stage lies between.
 - A helper that answers two waiters with next to nothing done between may have worked for both
   at once: that work is help, when the second one waited before it began.
 - In an event loop's time the walk answers only when the thread's next operation is R's too.
 - QUEUED and HOL are leaves: what the other request did with its time is its own path.
 - Owner word against the first releasing wake: on disagreement the part is a leaf, holder 0.
"""

INF = 1 << 62

IDLE_CLASSES = ("epoll", "poll", "accept")
IDLE_WHEN_FREE = ("net_recv", "cond")
CTX_TASK, CTX_KTHREAD, CTX_KSOFTIRQD = 0, 5, 4
MAX_HOPS = 8

FUTEX, READ = 202, 0
# x86-64 system calls this oracle knows; the rest is "blocked"
SYSCALL_CLASS = {
    35: "sleep", 230: "sleep", 232: "epoll", 281: "epoll", 7: "poll", 288: "accept", 43: "accept",
    74: "disk_fsync", 45: "net_recv", 44: "net_send", 61: "child",
}
FD_CLASS = {5: "pipe", 6: "net_recv", 8: "unix"}


class Node:
    """One piece [start, end) of a task's time and the pieces that explain it."""

    def __init__(self, start, end, tid, cls, **kw):
        self.start, self.end, self.tid, self.cls = start, end, tid, cls
        self.waker = kw.get("waker", 0)
        self.holder = kw.get("holder", 0)
        self.by = kw.get("by")
        self.for_ = kw.get("for_")
        self.open = kw.get("open", False)
        self.not_traced = kw.get("not_traced", False)
        self.kids = kw.get("kids") or []

    def key(self):
        return (self.tid, self.cls, self.waker, self.holder, self.by, self.for_, self.open,
                bool(self.kids))

    def __repr__(self):
        extra = "".join(f" {n}={v}" for n, v in (("w", self.waker), ("h", self.holder),
                                                  ("by", self.by), ("for", self.for_)) if v)
        return (f"{self.tid} {self.cls}[{self.start},{self.end}){extra}"
                f"{' open' if self.open else ''}{' nt' if self.not_traced else ''}")


class Span:
    """A stretch of a task's timeline: run, runq, block, lost."""

    def __init__(self, kind, start, end, ep=None):
        self.kind, self.start, self.end, self.ep = kind, start, end, ep


class Wait:
    """What an EPISODE or OPEN_TASK tells of one time off the CPU."""

    def __init__(self, rec, extra, tgid):
        self.out, self.wake, self.end = rec["out"], rec["wake"], rec["ts"]
        self.state, self.key, self.tgid = rec["state"], rec["key"], tgid
        self.nr = rec["aux"]
        self.still_open = rec["k"] == "OPEN_TASK"
        self.preempted = bool(rec["flags"] & 1) if not self.still_open else False
        self.ctx = (rec["flags"] >> 1) & 7 if not self.still_open else CTX_TASK
        self.waker = rec.get("waker_tid", 0)
        self.extra = extra
        self.owner = extra["owner"] if extra and extra["flags"] & 1 else rec.get("owner", 0)
        args = extra["args"] if extra else rec.get("args", (0,) * 6)
        self.cls = self.classify(args, extra["fd_kind"] if extra else 0)

    def classify(self, args, fd_kind):
        if self.nr == FUTEX:
            # glibc: a mutex waits on val 2 (a timed one with WAIT_BITSET), a condition variable
            # with WAIT_BITSET on val 0
            return "cond" if args[1] & 127 == 9 and args[2] != 2 else "lock"
        if self.nr == READ:
            return FD_CLASS.get(fd_kind, "blocked")
        return SYSCALL_CLASS.get(self.nr, "blocked")

    def by_task(self):
        """The task that ended it, 0 if none did or it was borrowed by an interrupt."""
        if self.wake and self.waker and self.ctx in (CTX_TASK, CTX_KTHREAD, CTX_KSOFTIRQD):
            return self.waker
        return 0


class Task:
    def __init__(self, tid):
        self.tid, self.tgid = tid, 0
        self.traced = False
        self.born = None     # (time, parent)
        self.dead = INF
        self.spans = []      # in order, no overlap
        self.ops = []        # (time, request id): server-socket operations, in order
        self.touches = []    # the same plus linked upstream operations
        self.idle = None     # its idle waits, once asked for

    def span_before(self, t):
        """The span that holds the instant just before t."""
        for s in self.spans:
            if s.start < t <= s.end:
                return s
        return None

    def waits(self):
        return [s for s in self.spans if s.kind == "block"]


class Request:
    def __init__(self, rec):
        self.id = (rec["cookie"], rec["ordinal"])
        self.over = rec["k"] == "REQ"
        self.arrival = rec["arrival"] or rec["first_recv"]
        self.first_recv, self.last_recv = rec["first_recv"], rec["last_recv"]
        self.sent = rec["last_send"]
        self.end = self.sent if self.over else rec["ts"]
        self.recv_tid, self.send_tid = rec["recv_tid"], rec["send_tid"]
        self.accepted = rec["accepted"]
        self.upstream = []  # [send, recv) of linked calls
        self.going_on = []  # [recv, recv) of their answers in parts
        self.eagain = []    # [EAGAIN, next send)
        self.ops = []       # (time, tid)
        self.recvs = []     # of these, that received
        self.holds = {}     # tid -> [(from, to)] by socket or lineage
        self.segs = None    # the path's own holders, latest first


class Oracle:
    def __init__(self, records):
        self.tasks, self.requests = {}, {}
        self.records = records
        self.end_of_trace = max(r["ts"] for r in records)
        self.load_tasks()
        self.load_requests()
        self.futex_wakes = self.load_wakes()
        for r in self.requests.values():
            self.socket_holds(r)
        for r in self.requests.values():
            r.segs = self.chain(r)
        self.served = self.load_served()

    # ---- records to timelines ---------------------------------------------------------------

    def task(self, tid):
        if tid not in self.tasks:
            self.tasks[tid] = Task(tid)
        return self.tasks[tid]

    def load_tasks(self):
        extras = {(r["tid"], r["seq"]): r for r in self.records if r["k"] == "EXTRA"}
        per_task = {}
        for r in self.records:
            k = r["k"]
            if k in ("TASK", "OPEN_TASK"):
                t = self.task(r["tid"])
                t.tgid = r["tgid"]
                if r["flags"] & 1:
                    t.traced = True
                if k == "TASK" and r["aux"] == 1:
                    t.born = (r["ts"], r["parent"])
                if k == "TASK" and r["aux"] == 3:
                    t.dead = r["ts"]
            if k in ("EPISODE", "OPEN_TASK"):
                per_task.setdefault(r["tid"], []).append(r)
                if k == "EPISODE":
                    self.task(r["tid"]).traced = True
        second = {}
        for r in self.records:
            if r["k"] == "WAKE":
                second.setdefault(r["tid"], []).append(r["ts"])
        for tid, recs in per_task.items():
            self.timeline(self.task(tid), recs, extras, second.get(tid, []))

    def timeline(self, t, recs, extras, second):
        """Episodes and open states, in the order of their times, to spans."""
        at = None  # on the CPU since; None: no data yet
        still_off = False
        told = {r["seq"] for r in recs if r["k"] == "EPISODE"}
        for r in recs:
            if r["k"] == "OPEN_TASK":
                if r["out"] and r["seq"] in told:
                    continue  # its EPISODE tells more
                if at is not None and r is not recs[-1]:
                    continue  # what comes later tells it too
            if r["k"] == "OPEN_TASK" and not r["out"]:
                # on the CPU; what was folded lies before it went on
                still_off = False
                if at is not None:
                    self.gap(t, at, r["last_in"], r["lost"][1])
                at = r["last_in"] or r["ts"]
                continue
            out = r["out"]
            if at is not None and out < at:
                out = at  # the same thread on two CPUs cannot be: the first one ends
            if at is not None:
                self.gap(t, at, out, r["lost"][1])
            w = Wait(r, extras.get((r["tid"], r["seq"])) if r["k"] == "EPISODE" else None, t.tgid)
            self.off_cpu(t, w, out, [x for x in second if w.wake and w.wake < x <= w.end])
            at = r["ts"]
            still_off = r["k"] == "OPEN_TASK"
        if at is not None and not still_off:
            end = min(t.dead, max(self.end_of_trace, at))
            if at < end:
                t.spans.append(Span("run", at, end))

    @staticmethod
    def gap(t, start, out, lost_ns):
        """[start, out) between two episodes: on the CPU, but for what was lost."""
        lost_from = max(start, out - lost_ns)
        if start < lost_from:
            t.spans.append(Span("run", start, lost_from))
        if lost_from < out:
            t.spans.append(Span("lost", lost_from, out))

    @staticmethod
    def off_cpu(t, w, out, second):
        def add(kind, start, end):
            if start < end:
                t.spans.append(Span(kind, start, end, w))
        if w.preempted or w.state == 0:
            add("runq", out, w.end)
        elif not w.wake:
            add("block", out, w.end)
        else:
            add("block", out, w.wake)
            queued = max(out, w.wake)
            if second:
                # it must have run, unseen, to be woken again
                add("lost", queued, second[-1])
                queued = second[-1]
            add("runq", queued, w.end)

    # ---- records to requests ----------------------------------------------------------------

    def load_requests(self):
        for r in self.records:
            if r["k"] in ("REQ", "OPEN_REQ"):
                q = Request(r)
                if q.over or q.id not in self.requests or not self.requests[q.id].over:
                    self.requests[q.id] = q
        for q in self.requests.values():
            self.add_op(q.recv_tid, q.first_recv, q.id)
            self.add_op(q.send_tid, q.sent, q.id)
        pending, begun = {}, {}
        for r in sorted((r for r in self.records if r["k"] == "SOCKOP"), key=lambda r: r["ts"]):
            up = r["flags"] & 1
            if up:
                if r["flags"] & 2:
                    self.upstream_op(r, pending, begun)
            elif r["aux"] in (1, 2) and (r["cookie"], r["ordinal"]) in self.requests:
                self.add_op(r["tid"], r["ts"], (r["cookie"], r["ordinal"]))
                if r["aux"] == 1:
                    self.requests[(r["cookie"], r["ordinal"])].recvs.append((r["ts"], r["tid"]))
            elif r["aux"] == 7:
                q = self.requests.get((r["cookie"], r["ordinal"]))
                if q:
                    q.eagain.append([r["ts"], INF])
        for q in self.requests.values():
            q.ops.sort()
            for e in q.eagain:
                e[1] = min([t for t in self.sends(q) if t > e[0]], default=INF)
        for t in self.tasks.values():
            t.ops = sorted(set(t.ops))
            t.touches = sorted(set(t.touches))

    def sends(self, q):
        return [r["ts"] for r in self.records if r["k"] == "SOCKOP" and not r["flags"] & 1
                and r["aux"] == 2 and (r["cookie"], r["ordinal"]) == q.id] + [q.sent]

    def add_op(self, tid, ts, rid):
        if tid and ts:
            self.task(tid).ops.append((ts, rid))
            self.task(tid).touches.append((ts, rid))
            self.requests[rid].ops.append((ts, tid))

    def upstream_op(self, r, pending, begun):
        rid = (r["link_cookie"], r["link_ordinal"])
        self.task(r["tid"]).touches.append((r["ts"], rid))
        if rid not in self.requests:
            return
        call = (r["cookie"], rid)
        if r["aux"] in (2, 3):
            begun.pop(call, None)
            if call not in pending:
                pending[call] = [r["ts"], INF]
                self.requests[rid].upstream.append(pending[call])
        elif r["aux"] == 1:
            if call in pending:
                pending.pop(call)[1] = r["ts"]
            if call in begun:
                self.requests[rid].going_on.append((begun[call], r["ts"]))
            begun[call] = r["ts"]

    def load_wakes(self):
        """(tgid, futex) -> [(time, waker, wakee)] of wakes by tasks: the releases."""
        wakes = {}
        for t in self.tasks.values():
            for s in t.spans:
                w = s.ep
                if s.kind == "block" and w and w.nr == FUTEX and w.by_task():
                    wakes.setdefault((t.tgid, w.key), []).append((w.wake, w.by_task(), t.tid))
        for v in wakes.values():
            v.sort()
        return wakes

    # ---- identity ---------------------------------------------------------------------------

    def is_idle(self, t, s):
        if s.ep.cls in IDLE_CLASSES:
            return True
        if s.ep.cls not in IDLE_WHEN_FREE:
            return False
        touched = [rid for x, rid in t.touches if x <= s.start]
        if not touched:
            return True
        q = self.requests.get(touched[-1])
        return q is not None and q.end <= s.start

    def idle_waits(self, t):
        if t.idle is None:
            t.idle = [s for s in t.waits() if self.is_idle(t, s)]
        return t.idle

    def idle_starts(self, t):
        return [s.start for s in self.idle_waits(t)]

    def next_let_go(self, tid, since, rid):
        """When @tid, working for @rid since then, turns to another request or goes idle."""
        t = self.task(tid)
        ends = [x for x, other in t.touches if x > since and other != rid]
        ends += [x for x in self.idle_starts(t) if x >= since]
        return min(ends + [t.dead, self.end_of_trace])

    def socket_holds(self, q):
        """Rules 1 and 2: from each operation on q until the task lets go; and children."""
        todo = [(tid, ts) for ts, tid in q.ops if ts < q.end]
        while todo:
            tid, ts = todo.pop(0)
            end = min(self.next_let_go(tid, ts, q.id), q.end)
            q.holds.setdefault(tid, []).append((ts, end))
            for c in self.tasks.values():
                if c.born and c.born[1] == tid and ts <= c.born[0] <= end:
                    todo.append((c.tid, c.born[0]))

    def holds_at(self, q, tid, t, hops):
        """Does @tid hold @q at t (the moment it wakes somebody)? Its end counts."""
        if any(s <= t <= e for s, e in q.holds.get(tid, [])):
            return True
        if hops >= MAX_HOPS:
            return False
        w = self.handed_over(q, tid, t, hops)
        return w is not None and not any(w.end <= x < t for x in self.idle_starts(self.task(tid)))

    def handed_over(self, q, tid, t, hops):
        """Rule 4b: the earliest wait of @tid after its last operation that a holder ended."""
        task = self.task(tid)
        o = max([x for x, _ in task.ops if x < t], default=-1)
        for s in task.waits():
            by = s.ep.by_task()
            if s.start >= o and s.ep.wake == s.end and s.end <= t and by and by != tid \
                    and s.ep.cls not in ("lock",) and self.holds_at(q, by, s.end, hops + 1):
                return s
        return None

    def chain(self, q):
        """Who held q, from its end back to its first byte: [(tid, from, to, how)], latest first.

        how: own (since an operation on q), handoff, lineage, after (rule 4c), gap (QUEUED or, on
        one thread, the event loop's), nobody."""
        segs, tid, t = [], q.send_tid, q.sent
        while t > q.first_recv:
            task = self.task(tid)
            before = [(x, rid == q.id) for x, rid in task.ops if x < t]
            o = max(before, default=None)
            if o and o[1]:
                segs.append((tid, o[0], t, "own"))
                t = o[0]
                continue
            since = o[0] if o else -1
            born = task.born if task.born and since < task.born[0] <= t else None
            if born and self.holds_at(q, born[1], born[0], 0):
                segs.append((tid, born[0], t, "lineage"))
                tid, t = born[1], born[0]
                continue
            s = self.handed_over(q, tid, t, 0)
            if s:
                segs.append((tid, s.end, t, "handoff"))
                tid, t = s.ep.by_task(), s.end
                continue
            got_more = (t, tid) in q.recvs
            tid, t = self.queued(q, segs, tid, t, since, got_more)
        return segs

    def queued(self, q, segs, tid, t, since, got_more):
        """Rule 4c (or d). Returns where the chain goes on."""
        task = self.task(tid)
        idle = [s.end for s in self.idle_waits(task) if s.end <= t]
        x = max([since] + idle)
        x = min(max(x, q.first_recv), t)
        last = None  # the holder that let go last
        for htid, spans in q.holds.items():
            for s, e in spans:
                if s < t and (last is None or (e, s) > (last[2], last[1])):
                    last = (htid, s, e)
        if last is None:
            segs.append((tid, x, t, "after"))
            segs.append((tid, q.first_recv, x, "nobody"))
            return tid, q.first_recv
        # who had it last has it until it lets go, if that is before the answer
        let_go = last[2] if last[2] < t else max(x, last[1])
        if last[0] == tid and (got_more or (
                self.owner(tid, x) != q.id and self.unfinished(tid, x))):
            x = t  # it was not q's before it received more of it; or another one's, still open
        if max(let_go, x) < t:
            segs.append((tid, max(let_go, x), t, "after"))
        if let_go < x:
            segs.append((tid, let_go, x, "loop" if last[0] == tid else
                         "elsewhere" if self.fed_by_a_stage(tid, t, last[0]) else "queue"))
        return last[0], let_go

    def fed_by_a_stage(self, tid, t, holder):
        """Its last work came from a task that has nothing to do with clients; or nobody was seen to give it
        any, and the holder gave some to such a task."""
        def answers(w):
            return any(x < t for x, _ in w.ops)

        fed = [s for s in self.idle_waits(self.task(tid)) if s.start < t and s.ep.by_task()]
        if not fed:
            mine = self.task(tid).tgid
            return any(w.tid != tid and w.traced and w.tgid == mine and not answers(w) and
                       any(s.end <= t and s.ep.by_task() == holder for s in self.idle_waits(w))
                       for w in list(self.tasks.values()))
        w = self.task(max(fed, key=lambda s: s.start).ep.by_task())
        return w.tid != holder and w.traced and w.tgid == self.task(tid).tgid and not answers(w)

    def unfinished(self, tid, t):
        rid = self.owner(tid, t)
        return rid is not None and (rid not in self.requests or self.requests[rid].end > t)

    def load_served(self):
        """tid -> [(from, to, request)]: whose work a task did, as far as it is known."""
        served = {}
        for q in self.requests.values():
            for tid, spans in q.holds.items():
                served.setdefault(tid, []).extend((s, e, q.id) for s, e in spans if s < e)
            for tid, s, e, how in q.segs:
                if how in ("own", "handoff", "lineage", "after"):
                    served.setdefault(tid, []).append((s, e, q.id))
                elif how == "loop":
                    # back to q by a linked upstream operation
                    served.setdefault(tid, []).extend(
                        (a, b, q.id) for a, b in self.owner_cuts(tid, s, e)
                        if self.owner(tid, a) == q.id)
        self.held = {tid: list(v) for tid, v in served.items()}
        helpers = []
        for q in self.requests.values():
            for tid, s, e, how in q.segs:
                if how in ("own", "handoff", "lineage", "after"):
                    helpers += self.helped(q, tid, s, e)
        for tid, b, rid in helpers:
            served.setdefault(tid, []).append((self.boundary_before(tid, b, helpers), b, rid))
        return served

    def helped(self, q, tid, s, e):
        """(helper, wake, q) for each wait of a holder that another task's work ended."""
        return [(x.ep.by_task(), x.end, q.id) for x in self.task(tid).waits()
                if s <= x.start and x.end <= e and x.ep.by_task() and x.ep.wake == x.end
                and x.ep.cls != "lock" and not self.goes_on(self.task(tid), x.ep)]

    def boundary_before(self, tid, b, helpers):
        t = self.task(tid)
        marks = [x for x, rid in t.ops if x < b]
        marks += [x for htid, x, _ in helpers if htid == tid and x < b]
        marks += [s.end for s in self.idle_waits(t) if s.end <= b]
        return max(marks, default=0)

    def serves(self, tid, t):
        """The request @tid works for just after t; holds count before help."""
        for s, e, rid in self.served.get(tid, []):
            if s <= t < e:
                return rid
        return None

    def serve_cuts(self, tid, lo, hi):
        cuts = {lo, hi}
        for s, e, _ in self.served.get(tid, []):
            cuts.update(x for x in (s, e) if lo < x < hi)
        return sorted(cuts)

    # ---- the walk ---------------------------------------------------------------------------

    def walk(self, tid, lo, hi, ctx=None, mode="plain", stack=()):
        """Pieces of [lo, hi) on @tid, in order. mode: plain (no identities), own (depth 0), help
        (busy helpers are QUEUED), lock (pieces name the request they were for)."""
        if mode in ("help", "lock") and lo < hi:
            out = []
            cuts = self.serve_cuts(tid, lo, hi)
            for a, b in zip(cuts, cuts[1:]):
                rid = self.serves(tid, a)
                if mode == "help" and rid is not None and rid != ctx:
                    if self.maybe_together(tid, lo, a, b, hi):
                        out += self.walk_one(tid, a, b, ctx, mode, stack, None)
                    else:
                        out.append(Node(a, b, tid, "queued", by=rid))
                else:
                    out += self.walk_one(tid, a, b, ctx, mode, stack,
                                         rid if mode == "lock" and rid != ctx else None)
            return out
        return self.walk_one(tid, lo, hi, ctx, mode, stack, None)

    def maybe_together(self, tid, since, a, b, end):
        """The work in [a, b) was for who was answered at b, and maybe for who was at end too."""
        if any(s <= a < e for s, e, _ in self.held.get(tid, [])):
            return False  # by its own sockets it is known
        return self.looks_together(tid, since, a, b, end)

    def looks_together(self, tid, since, a, b, end):
        little = (b - a) // 8
        if a <= since and not self.just_woken(tid, since, little):
            return False
        cpu = 0
        for s in self.task(tid).spans:
            lo, hi = max(s.start, b), min(s.end, end)
            if lo < hi and (s.kind == "block" or s.kind == "lost" and s.ep):
                return False
            cpu += max(0, hi - lo) if s.kind in ("run", "lost") else 0  # what was folded may be either
        return cpu < little

    def just_woken(self, tid, at, little):
        waits = [s for s in self.task(tid).waits() if s.start < at]
        if not waits or waits[-1].end > at:
            return False
        ran = max(waits[-1].ep.end, waits[-1].end)
        return max(ran, at) - ran < little

    def walk_one(self, tid, lo, hi, ctx, mode, stack, rid):
        out, t = [], hi  # latest first
        task = self.task(tid)
        while t > lo:
            s = task.span_before(t)
            if s is None:
                out += self.no_data(task, lo, t, ctx, mode, stack, rid)[::-1]
                earlier = [x.end for x in task.spans if x.end < t]
                t = max([lo] + earlier)
                continue
            a = max(s.start, lo)
            if s.kind == "run":
                out.append(Node(a, t, tid, "cpu", for_=rid))
            elif s.kind == "runq":
                out.append(Node(a, t, tid, "runq", for_=rid))
            elif s.kind == "lost":
                out.append(Node(a, t, tid, "unknown", for_=rid))
            else:
                out += self.blocked(task, s, a, t, ctx, mode, stack, rid)[::-1]
            t = a
        return out[::-1]

    def no_data(self, task, lo, t, ctx, mode, stack, rid):
        """Rule 8 for [lo, t) or the part of it that has no data."""
        if task.born and t <= task.born[0] and not any(x.end < t for x in task.spans):
            parent = task.born[1]
            if parent not in stack + (task.tid,) and self.task(parent).traced:
                return self.walk(parent, lo, t, ctx, mode, stack + (task.tid,))
        a = max([lo] + [x.end for x in task.spans if x.end < t])
        return [Node(a, t, task.tid, "unknown", for_=rid)]

    def blocked(self, task, s, a, t, ctx, mode, stack, rid):
        w = s.ep
        shown = "net_recv" if w.cls == "accept" else w.cls
        node = Node(a, t, task.tid, shown, waker=w.by_task(), for_=rid)
        if not w.wake:
            node.open = w.still_open or t < s.end
            return [node]
        if t < w.wake:
            node.open = True
            return [node]
        if w.cls == "lock":
            return self.lock(task, s, a, t, ctx, mode, stack, rid)
        last = self.end_of_herd(task, w) if w.cls == "cond" else w
        by = last.by_task()
        if w.cls == "cond" and by and self.task(by).traced and self.waited_too(by, w, last.wake):
            return self.in_turn(task, s, a, t, last, ctx, mode, stack, rid)
        node.waker = by
        if not by:
            return [node]
        if not self.task(by).traced:
            node.not_traced = True
            return [node]
        if by in stack + (task.tid,):
            return [Node(a, t, task.tid, "cycle", waker=by, for_=rid)]
        node.kids = self.walk(by, a, t, self.ctx_of(ctx, mode, rid), self.below(mode),
                              stack + (task.tid,))
        return [node]

    def episodes(self, task):
        """Its times off the CPU, and those within which it ran unseen."""
        eps, unseen = [], set()
        for s in task.spans:
            if s.ep and (not eps or eps[-1] is not s.ep):
                eps.append(s.ep)
            elif s.ep and s.kind == "lost":
                unseen.add(id(eps[-1]))
        return eps, unseen

    def wakes_on(self, task, w, lo, hi):
        """Of what @w waits for, in (lo, hi]; a condition variable has two words, used in turn."""
        return sorted(x for word in {w.key, w.key ^ 4 if w.cls == "cond" else w.key}
                      for x in self.futex_wakes.get((task.tgid, word), []) if lo < x[0] <= hi)

    def goes_on(self, task, w):
        """Woken with others, and all it did then was to look, behind the lock beneath, and to wait for the
        same again: that wait."""
        if w.nr != FUTEX or not w.by_task() or w.still_open:
            return None
        if not any(x[1] == w.by_task() and x[2] != task.tid
                   for x in self.wakes_on(task, w, w.wake - 100_000, w.wake + 100_000)):
            return None
        eps, unseen = self.episodes(task)
        blocked = {id(s.ep) for s in task.waits()}
        at = next((i for i, e in enumerate(eps) if e is w), len(eps))
        ran = 0
        for before, e in list(zip(eps[at:], eps[at + 1:]))[:8]:
            ran += e.out - before.end
            if ran > 100_000 or id(before) in unseen:
                return None
            if id(e) in blocked and e.nr == w.nr and e.key | 7 == w.key | 7:
                served = any(w.end <= x < e.out for x, _ in task.ops)
                return None if e.still_open or not e.by_task() or served else e
            if id(e) in blocked and e.cls != "lock":
                return None
        return None

    def end_of_herd(self, task, w):
        """The wait whose end counts."""
        while after := self.goes_on(task, w):
            w = after
        return w

    # ---- conditions taken in turn -----------------------------------------------------------

    def waited_too(self, tid, w, before):
        """@tid's last wait for what @w waits for that began before then."""
        own = [s for s in self.task(tid).waits() if s.ep.nr == w.nr and s.ep.key | 7 == w.key | 7 and
               s.start < before and self.task(tid).tgid == w.tgid]
        return own[-1] if own else None

    def turn(self, task, w, v, holder):
        """Does the wake @v end the part before @holder's? None: nothing tells."""
        s = self.waited_too(holder, w, v[0])
        if s is None or s.end <= w.out < v[0] and s.end < v[0]:
            return None
        if s.end >= v[0]:
            return True
        let_go = any(x[1] == holder for x in self.wakes_on(task, w, w.out, v[0]) if s.end < x[0] and x != v)
        return None if let_go else False

    def in_turn(self, task, s, a, t, last, ctx, mode, stack, rid):
        w, to, holder, parts = s.ep, last.wake, last.by_task(), []
        wakes = self.wakes_on(task, w, w.out, to)
        while wakes:
            v = wakes.pop()
            if v[0] >= to or v[1] == holder:
                continue
            turn = self.turn(task, w, v, holder)
            if turn is False:
                continue
            same = [x[2] for x in self.wakes_on(task, w, v[0] - 1, v[0])]
            parts.append((v[0], to, holder, v[0] if holder in same else None))
            to, holder = v[0], v[1]
            if turn is None:
                holder = 0
                break
        parts.append((w.out, to, holder, None))
        out = []
        for lo, hi, who, woken_at in parts[::-1]:
            lo, hi = max(lo, a), min(hi, t)
            if lo < hi:
                out.append(self.lock_part(task, lo, hi, who, woken_at, last.by_task(), ctx, mode, stack, rid,
                                          "cond"))
        return out

    @staticmethod
    def below(mode):
        return {"plain": "plain", "own": "help", "help": "help", "lock": "help"}[mode]

    @staticmethod
    def ctx_of(ctx, mode, rid):
        return rid if mode == "lock" and rid is not None else ctx

    def lock(self, task, s, a, t, ctx, mode, stack, rid):
        """Rule 4: one piece for each release seen, walked on who gave it."""
        w = s.ep
        wakes = [x for x in self.futex_wakes.get((task.tgid, w.key), [])
                 if s.start < x[0] < s.end and x[2] != task.tid]
        last = [(s.end, w.by_task(), task.tid)]
        out, start, woken = [], s.start, ()
        first = True
        times = sorted({x[0] for x in wakes}) + [s.end]
        for end in times:
            here = [x for x in wakes if x[0] == end] or last
            holder = here[0][1]
            conflict = first and w.owner and holder and w.owner != holder
            lo, hi = max(start, a), min(end, t)
            if lo < hi:
                sure = w.owner or not w.extra
                since = start if sure else self.had_since(holder, w.key, start, end)
                woken_at = start if holder in woken else None
                for x, y, named in ((lo, min(hi, since), False), (max(lo, since), hi, True)):
                    if x < y:
                        out.append(self.lock_part(task, x, y, 0 if conflict else holder, woken_at,
                                                  w.by_task(), ctx, mode, stack, rid))
                        out[-1].holder = out[-1].holder if named else 0
                if first and not holder and w.owner:  # given up: nobody let it go meanwhile
                    out[-1].holder = w.owner
            start, woken, first = end, tuple(x[2] for x in here), False
        return out

    def had_since(self, holder, key, start, end):
        """A holder that itself waited for a lock nobody is known to have had may have waited for its turn
        at this one: it had it since then for sure."""
        if not holder or not self.task(holder).traced:
            return start
        own = [w for w in self.task(holder).waits() if w.ep.cls == "lock" and not w.ep.owner and w.ep.extra
               and w.ep.key != key and w.ep.out < end and w.ep.end > start]
        return max([start] + [min(end, w.ep.wake or w.ep.end) for w in own][-1:])

    def lock_part(self, task, lo, hi, holder, woken_at, waker, ctx, mode, stack, rid, cls="lock"):
        node = Node(lo, hi, task.tid, cls, waker=waker, holder=holder, for_=rid)
        if not holder:
            return node
        if not self.task(holder).traced:
            node.not_traced = True
            return node
        if holder in stack + (task.tid,):
            return Node(lo, hi, task.tid, "cycle", waker=waker, holder=0, for_=rid)
        node.kids = self.walk(holder, lo, hi, ctx, "plain" if mode == "plain" else "lock",
                              stack + (task.tid,))
        if woken_at is not None:
            self.hand_off(node.kids, self.task(holder), woken_at)
        return node

    @staticmethod
    def hand_off(kids, holder, woken_at):
        """The lock was the holder's from its wake on; until it ran, that is the run queue's."""
        ran = min([s.start for s in holder.spans if s.kind in ("run", "lost")
                   and s.end > woken_at], default=INF)
        for k in kids:
            if k.tid == holder.tid and k.cls == "runq" and k.end <= ran:
                k.cls = "lock_handoff"

    # ---- a request's path -------------------------------------------------------------------

    def path(self, q):
        out = []
        for tid, s, e, how in reversed(q.segs):
            if how in ("handoff", "lineage", "after"):
                out += self.walk(tid, s, e, q.id, "own")
            elif how == "own":
                out += self.own(q, tid, s, e)
            elif how == "loop":
                out += self.loop(q, tid, s, e)
            elif how == "queue":
                out += self.queue(q, tid, s, e)
            elif how == "elsewhere":
                out.append(Node(s, e, tid, "ambiguous"))
            else:
                out.append(Node(s, e, tid, "unknown"))
        if q.arrival < q.first_recv:
            out = self.loop(q, q.recv_tid, q.arrival, q.first_recv) + out
        return out

    def queue(self, q, tid, lo, hi):
        """R lay in a queue while the task that then took it served others."""
        out = []
        for a, b in self.pairs(self.serve_cuts(tid, lo, hi)):
            rid = self.serves(tid, a)
            if rid not in (None, q.id):
                sent = min([x for x, r in self.task(tid).ops if r == q.id and x >= hi], default=INF)
                if self.looks_together(tid, lo, a, b, sent):
                    out.append(Node(a, b, tid, "ambiguous"))
                else:
                    out.append(Node(a, b, tid, "queued", by=rid))
                continue
            idle = [(s.start, s.end) for s in self.idle_waits(self.task(tid))]
            cuts = {a, b}.union(x for i in idle for x in i if a < x < b)
            for c, d in self.pairs(sorted(cuts)):
                free = any(s <= c < e and e <= hi for s, e in idle)
                out.append(Node(c, d, tid, "ambiguous" if free else "queued"))
        return out

    @staticmethod
    def pairs(cuts):
        return list(zip(cuts, cuts[1:]))

    def owner(self, tid, t):
        """The request the thread last touched, unless it went idle since."""
        touched = [(x, rid) for x, rid in self.task(tid).touches if x <= t]
        if not touched:
            return None
        x, rid = touched[-1]
        return None if any(x <= i <= t for i in self.idle_starts(self.task(tid))) else rid

    def owner_cuts(self, tid, lo, hi):
        t = self.task(tid)
        marks = [x for x, _ in t.touches] + self.idle_starts(t)
        return self.pairs(sorted({lo, hi}.union(x for x in marks if lo < x < hi)))

    def own(self, q, tid, lo, hi):
        """[an operation of q, the thread's next one for q): its own time but for idle waits."""
        out = []
        for a, b in self.owner_cuts(tid, lo, hi):
            if self.owner(tid, a) == q.id:
                out += self.walk(tid, a, b, q.id, "own")
            else:
                out += self.loop(q, tid, a, b)
        return out

    def loop(self, q, tid, lo, hi):
        """"Arrival and event loops": the time of a thread that was not q's."""
        task = self.task(tid)
        cuts = {lo, hi}
        marks = [x for x, _ in task.touches] + self.idle_starts(task)
        marks += [x for s in task.spans for x in (s.start, s.end)]
        marks += [x for p in q.upstream + q.going_on + q.eagain for x in p]
        marks += [q.last_recv, q.accepted, q.first_recv]
        cuts.update(x for x in marks if lo < x < hi)
        out, walked = [], None  # [walked, a) is the walk's, in one piece
        for a, b in self.pairs(sorted(cuts)):
            n = self.loop_slice(q, tid, a, b)
            if n is None:
                walked = a if walked is None else walked
                continue
            if walked is not None:
                out += self.walk(tid, walked, a, q.id, "own")
                walked = None
            out.append(n)
        return out + (self.walk(tid, walked, hi, q.id, "own") if walked is not None else [])

    def loop_slice(self, q, tid, a, b):
        """A piece, or None where the walk answers."""
        s = self.task(tid).span_before(b)
        kind = s.kind if s else None
        born = self.task(tid).born
        if not s and not (born and b <= born[0]):
            kind = "lost"
        owner = self.owner(tid, a)
        if kind == "lost":
            return Node(a, b, tid, "unknown")
        if kind in ("run", "block") and owner not in (None, q.id):
            return Node(a, b, tid, "hol", by=owner)
        if kind == "runq":
            return Node(a, b, tid, "runq")
        if owner == q.id:
            return None
        if any(x <= a < y for x, y in q.upstream):
            return Node(a, b, tid, "upstream")
        if any(x <= a < y for x, y in q.eagain):
            return Node(a, b, tid, "net_send")
        if any(x <= a < y for x, y in q.going_on):
            return Node(a, b, tid, "upstream")
        if q.first_recv <= a < q.last_recv:
            return Node(a, b, tid, "net_recv")
        if a < q.accepted:
            return Node(a, b, tid, "acceptq")
        if a < q.first_recv:
            return Node(a, b, tid, "sockq")
        last_op = max([x for x, t in q.ops if x <= a], default=0)
        if not any(last_op < x <= a and rid != q.id for x, rid in self.task(tid).ops):
            after = [rid for x, rid in self.task(tid).ops if x >= b]
            if not after or after[0] == q.id:
                return None
        return Node(a, b, tid, "async")


# ---- canonical form -------------------------------------------------------------------------

def canonical(nodes):
    """Joins neighbours that say the same: how often a piece is cut is not part of the answer."""
    out = []
    for n in nodes:
        n.kids = canonical(n.kids)
        if out and out[-1].end == n.start and out[-1].key() == n.key():
            out[-1].end = n.end
            out[-1].kids = canonical(out[-1].kids + n.kids)
        else:
            out.append(n)
    return out


def check_exact(nodes, lo, hi):
    """A partition of [lo, hi), nested ones of their parents. Returns a complaint or None."""
    at = lo
    for n in nodes:
        if n.start != at or n.end <= n.start:
            return f"piece {n!r} does not start at {at}"
        at = n.end
        if n.kids:
            bad = check_exact(n.kids, n.start, n.end)
            if bad:
                return bad
    return None if at == hi else f"ends at {at}, not {hi}"


def flat(nodes, depth=0):
    for n in nodes:
        yield depth, n
        yield from flat(n.kids, depth + 1)


def show(nodes):
    return "\n".join("  " * d + repr(n) for d, n in flat(nodes))
