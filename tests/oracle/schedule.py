# SPDX-License-Identifier: Apache-2.0
"""Random valid schedules: a small machine of CPUs, tasks, locks, queues and sockets.

Programs are Python generators that run on simulated CPUs; what the probes would have written about
them comes out as records (dicts), and encode() turns one into the bytes of src/core/event.h, written
down here a second time so that a wrong offset on either side shows."""

import heapq
import random
import struct

KINDS = {"EPISODE": 1, "EXTRA": 2, "SOCKOP": 3, "REQ": 4, "TASK": 7, "OPEN_TASK": 8, "OPEN_REQ": 9,
         "LOSS": 10, "TICK": 11, "TARGET": 15, "OPTION": 16, "WAKE": 23, "QUERY": 0}
PREEMPT, EARLY, SEEDED, BORN = 1, 16, 64, 128
CTX_TASK, CTX_SOFTIRQ, CTX_HARDIRQ, CTX_IDLE, CTX_KSOFTIRQD, CTX_KTHREAD = range(6)
OP_RECV, OP_SEND, OP_CONNECT, OP_EAGAIN = 1, 2, 3, 7
SO_UPSTREAM, SO_LINKED, SO_VOTE2 = 1, 2, 4
FUTEX, EPOLL, RECVFROM, ACCEPT, FSYNC, NANOSLEEP, READ = 202, 232, 45, 288, 74, 230, 0
ADDR = struct.pack("<BBH16s4s", 2, 0, 40000, bytes([10, 0, 0, 7]), b"")
NO_ADDR = bytes(24)


# ---- the wire -------------------------------------------------------------------------------

def body(r):
    """The bytes after the header, from the structs of event.h read field by field."""
    k = r["k"]
    g = r.get
    if k == "EPISODE":
        cnt, ns = r["lost"]
        return struct.pack("<IIQQIIIIQ", r["tid"], r["seq"], r["out"], r["wake"], r["state"],
                           r["waker_tid"], r["waker_tgid"], r["key"], cnt << 44 | ns)
    if k == "EXTRA":
        return struct.pack("<II4Q6QQIIQQIIQ16sQ16s16siIQIIII", r["tid"], r["seq"], 0, 0, 0, 0,
                           *r["args"], r["uaddr"], r["owner"], 0, 0, 0, 0, 0, 0, b"", 0, b"", b"",
                           r["fd"], r["fd_kind"], r["fd_id"], 0, 0, 0, 0)
    if k == "SOCKOP":
        return struct.pack("<QIIQQIIH3H", r["cookie"], r["tid"], r["tgid"], 100, g("link_cookie", 0),
                           g("link_ordinal", 0), g("ordinal", 0), 8080, 0, 0, 0) + ADDR
    if k in ("REQ", "OPEN_REQ"):
        return struct.pack("<QII6QQQIIQIIIIH3H", r["cookie"], r["ordinal"], g("what", 0),
                           r["arrival"], r["first_recv"], r["last_recv"], r["first_send"],
                           r["last_send"], r["accepted"], 100, 200, r["recv_cnt"], r["send_cnt"],
                           r["eagain_ns"], r["eagain_cnt"], r["recv_tid"], r["send_tid"], r["tgid"],
                           8080, 0, 0, 0) + ADDR + struct.pack(
                               "<QII", r["up_cookie"], r["up_votes"], r["up_calls"]) + (
                                   ADDR if r["up_cookie"] else NO_ADDR) + struct.pack(
                                       "<16sQ", b"srv", 1)
    if k == "TASK":
        return struct.pack("<IIQIIiIQ16s", r["tid"], r["tgid"], r["start"], g("parent", 0),
                           g("old_tid", 0), 0, 0, 0, b"srv")
    if k == "OPEN_TASK":
        cnt, ns = r["lost"]
        return struct.pack("<II3Q4I6QQIIQQiIQQ16sQQ", r["tid"], r["tgid"], r["start"], r["out"],
                           r["wake"], r["state"], r["seq"], 0, r["key"], *r["args"], r["uaddr"],
                           r["owner"], 0, 0, 0, -1, 0, 0, 0, b"srv", cnt << 44 | ns, r["last_in"])
    if k == "TICK":
        return struct.pack("<4Q", r["drained_to"], 0, 0, 0)
    if k == "TARGET":
        return struct.pack("<IIQ16s", r["tgid"], 0, 1, b"srv")
    if k == "OPTION":
        return struct.pack("<Q", r["value"])
    if k == "WAKE":
        return struct.pack("<4I", r["tid"], r["waker_tid"], r["waker_tgid"], r["key"])
    if k == "QUERY":
        return struct.pack("<IIQQ", r["tid"], 0, r["lo"], r["hi"])
    raise ValueError(k)


SIZES = {"EPISODE": 64, "EXTRA": 240, "SOCKOP": 88, "REQ": 224, "OPEN_REQ": 224, "TASK": 72,
         "OPEN_TASK": 200, "TICK": 48, "TARGET": 48, "OPTION": 24, "WAKE": 32, "QUERY": 40}


def encode(r):
    b = body(r)
    size = 16 + len(b)
    assert size == SIZES[r["k"]], (r["k"], size)
    return struct.pack("<HBBHHQ", size, KINDS[r["k"]], r.get("flags", 0), r.get("cpu", 0),
                       r.get("aux", 0) & 0xffff, r["ts"]) + b


def frame(records):
    data = b"".join(encode(r) for r in records)
    return struct.pack("<I", len(data)) + data


def query(tid, lo, hi):
    return {"k": "QUERY", "tid": tid, "lo": lo, "hi": hi, "ts": hi}


# ---- the machine ----------------------------------------------------------------------------

class Spec:
    """How a task is going to block."""

    def __init__(self, nr, key=0, args=None, uaddr=0, owner=0, fd_kind=0, state=1):
        self.nr, self.key, self.uaddr, self.owner = nr, key, uaddr, owner
        self.args = args or (0,) * 6
        self.fd_kind, self.state = fd_kind, state


class Proc:
    def __init__(self, tid, tgid, name):
        self.tid, self.tgid, self.name = tid, tgid, name
        self.gen = None
        self.state = "new"
        self.cpu = None
        self.left = 0          # CPU time of the current step still to go
        self.token = 0
        self.seq = 1
        self.out = self.wake = self.last_in = 0
        self.waker, self.ctx = None, CTX_TASK
        self.spec = None
        self.preempted = False
        self.extra_flags = 0
        self.lost = [0, 0]
        self.start = 0
        self.works_for = None
        self.mortal = False    # exits, and then nothing tells what was lost last


class Recorder:
    """What the probes write: needs rnd, now, loss (share of episodes folded) and records."""

    def episode(self, p, c):
        sp, w = p.spec, p.waker
        if self.rnd.random() < self.loss and not p.mortal:
            p.lost[0] += 1
            p.lost[1] += self.now - p.out
        else:
            born = p.extra_flags & BORN
            ep = {"k": "EPISODE", "ts": self.now, "cpu": c, "aux": sp.nr, "tid": p.tid, "seq": p.seq,
                  "out": p.out, "wake": p.wake, "state": sp.state if not p.preempted else 0,
                  "flags": (PREEMPT if p.preempted and not born else 0) | p.ctx << 1 | p.extra_flags,
                  "waker_tid": w.tid if w else 0, "waker_tgid": w.tgid if w else 0, "key": sp.key,
                  "lost": tuple(p.lost)}
            p.lost = [0, 0]
            recs = [ep]
            if not p.preempted and (sp.fd_kind or sp.args[1] or self.rnd.random() < 0.3):
                recs.append({"k": "EXTRA", "ts": self.now, "cpu": c, "aux": sp.nr, "tid": p.tid,
                             "seq": p.seq, "args": sp.args, "uaddr": sp.uaddr, "owner": sp.owner,
                             "flags": 1 if sp.owner else 0, "fd": -1, "fd_kind": sp.fd_kind,
                             "fd_id": 0})
                if self.rnd.random() < 0.5:
                    recs.reverse()
            self.records += recs
        p.seq += 1
        p.preempted, p.extra_flags, p.waker, p.ctx, p.wake = False, 0, None, CTX_TASK, 0

    def open_task(self, p, flags, ts):
        off = p.state != "run"
        sp = p.spec or Spec(-1, state=0)
        self.records.append({
            "k": "OPEN_TASK", "ts": ts, "flags": flags, "aux": sp.nr if off else -1, "tid": p.tid,
            "tgid": p.tgid, "start": p.start, "out": p.out if off else 0,
            "wake": p.wake if off else 0,
            "state": sp.state if off and not p.preempted else 0, "seq": p.seq,
            "key": sp.key if off else 0, "args": sp.args if off else (0,) * 6,
            "uaddr": sp.uaddr if off else 0, "owner": sp.owner if off else 0,
            "lost": tuple(p.lost), "last_in": p.last_in if not off else 0})


class World(Recorder):
    def __init__(self, seed, ncpu=2, loss=0.0, quantum=(8, 40), start=1000):
        self.rnd = random.Random(seed)
        self.ncpu, self.loss, self.quantum = ncpu, loss, quantum
        self.now, self.t0 = start, start
        self.heap, self.order = [], 0
        self.procs, self.ready = {}, []
        self.cpus = [None] * ncpu
        self.records, self.queries = [], []
        self.truth = {}  # tid -> [(since, request)]
        self.next_tid = 101
        self.cookie = 0x10

    # events
    def at(self, t, fn, *a):
        self.order += 1
        heapq.heappush(self.heap, (t, self.order, fn, a))

    def after(self, ns, fn, *a):
        self.at(self.now + ns, fn, *a)

    def run(self, until):
        while self.heap and self.heap[0][0] <= until:
            self.now, _, fn, a = heapq.heappop(self.heap)
            fn(*a)
        self.now = until

    # tasks
    def spawn(self, name, gen_fn, *args, tgid=100, parent=None):
        tid = self.next_tid
        self.next_tid += 1
        p = Proc(tid, tgid, name)
        self.procs[tid] = p
        p.gen = gen_fn(p, *args)
        p.start = self.now
        if parent:
            p.out = p.wake = self.now
            p.extra_flags, p.mortal = BORN, True
            self.records.append({"k": "TASK", "ts": self.now, "aux": 1, "flags": 1, "tid": tid,
                                 "tgid": tgid, "start": self.now, "parent": parent.tid})
            p.preempted = True
            p.spec = Spec(-2, state=0)
        else:
            p.out = self.now - self.rnd.randint(1, 9)
            p.wake, p.preempted = 0, True
            p.extra_flags = SEEDED
            p.spec = Spec(-1, state=0)
            self.open_task(p, 1 | 8, self.now)
        p.state = "ready"
        self.ready.append(p)
        self.kick()
        return p

    def kick(self):
        for c in range(self.ncpu):
            if self.cpus[c] is None and self.ready:
                self.after(self.rnd.choice((0, 0, 1, 2)), self.dispatch, c)

    def dispatch(self, c):
        if self.cpus[c] is not None or not self.ready:
            return
        i = 0 if self.rnd.random() < 0.8 else self.rnd.randrange(len(self.ready))
        if self.ready[i].out >= self.now and not self.ready[i].extra_flags & BORN:
            self.after(1, self.dispatch, c)
            return
        p = self.ready.pop(i)
        self.cpus[c], p.cpu = p, c
        self.episode(p, c)
        p.state, p.last_in = "run", self.now
        self.slice(p)

    def slice(self, p):
        p.token += 1
        if p.left <= 0:
            p.left = 1
        ns = min(p.left, self.rnd.randint(*self.quantum))
        self.after(ns, self.slice_end, p, p.token, ns)

    def slice_end(self, p, token, ns):
        if p.token != token or p.state != "run":
            return
        p.left -= ns
        while p.left <= 0:
            try:
                cmd = next(p.gen)
            except StopIteration:
                self.exit(p)
                return
            if isinstance(cmd, Spec):
                self.block(p, cmd)
                return
            p.left = cmd
        if self.ready and self.rnd.random() < 0.6:
            self.switch_out(p, Spec(-1, state=0), True)
        else:
            self.slice(p)

    def switch_out(self, p, spec, preempted):
        p.out, p.spec, p.preempted = self.now, spec, preempted
        self.cpus[p.cpu] = None
        c = p.cpu
        p.cpu = None
        if preempted:
            p.state = "ready"
            self.ready.append(p)
        else:
            p.state = "blocked"
        if self.ready:
            self.after(0, self.dispatch, c)

    def block(self, p, spec):
        p.left = 0
        self.switch_out(p, spec, False)

    def wake_up(self, p, waker=None, ctx=CTX_TASK):
        if p.state != "blocked":
            return False
        p.state = "ready"
        p.wake, p.waker, p.ctx = self.now, waker, ctx
        self.ready.append(p)
        self.kick()
        return True

    def irq_wake(self, p):
        """Woken by an interrupt, on top of some running task or an idle CPU."""
        running = [x for x in self.cpus if x]
        if running and self.rnd.random() < 0.6:
            self.wake_up(p, self.rnd.choice(running), self.rnd.choice((CTX_SOFTIRQ, CTX_HARDIRQ)))
        else:
            self.wake_up(p, None, CTX_IDLE)

    def exit(self, p):
        self.records.append({"k": "TASK", "ts": self.now, "aux": 3, "flags": 1, "tid": p.tid,
                             "tgid": p.tgid, "start": p.start})
        p.state = "dead"
        c, p.cpu = p.cpu, None
        self.cpus[c] = None
        if self.ready:
            self.after(0, self.dispatch, c)

    def refresh(self, nets, last=False):
        """What the iterators tell, and the TICK after them."""
        for p in self.procs.values():
            if p.state != "dead":
                self.open_task(p, 17 if last else 1, self.now)
        for net in nets:
            net.refresh()
        self.tick(last)

    def tick(self, last):
        self.records.append({"k": "TICK", "ts": self.now, "cpu": 0xffff, "flags": int(last),
                             "drained_to": self.now if last else max(
                                 self.t0, self.now - self.rnd.randint(0, 20))})

    # truth
    def mark(self, p, q):
        """From now on @p works for request @q (None: nobody's)."""
        p.works_for = q
        self.truth.setdefault(p.tid, []).append(
            (self.now, (q.conn.cookie, q.ordinal) if q else None))

    # small steps
    def step(self):
        """The cost of an operation: mostly small, so that ties between CPUs are common."""
        return self.rnd.choice((1, 1, 1, 2, 3))

    def work(self, most=25):
        return self.rnd.randint(1, most)


# ---- what programs use ----------------------------------------------------------------------

class Mutex:
    """Barging: unlock wakes one waiter and leaves the lock free for whoever comes first."""

    def __init__(self, w, addr):
        self.w, self.addr = w, addr
        self.owner, self.waiters = None, []
        self.held, self.since = [], 0

    def holds(self):
        """Truth: (tid, from, to) of everybody who had it."""
        now = [(self.owner.tid, self.since, self.w.now)] if self.owner else []
        return self.held + now

    def lock(self, p):
        w = self.w
        yield w.step()
        while self.owner is not None:
            self.waiters.append(p)
            known = self.owner.tid if w.rnd.random() < 0.8 else 0
            yield Spec(FUTEX, self.addr, (self.addr, 128, 2, 0, 0, 0), self.addr, known)
        self.owner, self.since = p, w.now

    def unlock(self, p):
        self.held.append((p.tid, self.since, self.w.now))
        self.owner = None
        if self.waiters:
            i = 0 if self.w.rnd.random() < 0.7 else self.w.rnd.randrange(len(self.waiters))
            self.w.wake_up(self.waiters.pop(i), p)
        yield self.w.step()


class Queue:
    """Work items under a condition variable; a busy worker may take one before the woken one."""

    def __init__(self, w, addr, fd_kind=0):
        self.w, self.addr, self.fd_kind = w, addr, fd_kind
        self.items, self.waiters = [], []

    def put(self, p, item):
        self.items.append(item)
        if self.waiters:
            self.w.wake_up(self.waiters.pop(0), p)
        yield self.w.step()

    def get(self, p):
        yield self.w.step()
        while not self.items:
            self.w.mark(p, None)
            self.waiters.append(p)
            if self.fd_kind:
                yield Spec(READ, 0, fd_kind=self.fd_kind)
            else:
                yield Spec(FUTEX, self.addr, (self.addr, 0x189, 0, 0, 0, 0), self.addr)
        item = self.items.pop(0)
        self.w.mark(p, item if isinstance(item, Req) else item["client"].works_for)
        return item


class Req:
    def __init__(self, conn, ordinal, arrival, parts):
        self.conn, self.ordinal, self.arrival, self.parts = conn, ordinal, arrival, parts
        self.recvs, self.sends, self.eagain, self.upstream = [], [], [], []
        self.recvs_told, self.sends_told, self.eagain_told = [], [], []
        self.got, self.over = 0, False


class Conn:
    """A connection of a client that sends a request and waits for its answer."""

    def __init__(self, net, loop=None):
        self.net, self.loop = net, loop
        net.w.cookie += 1
        net.conns.append(self)
        self.cookie = net.w.cookie
        self.ordinal, self.accepted = 0, net.w.t0 - 5
        self.req, self.unread, self.reader = None, [], None


class Net:
    """Sockets, their clients, and the REQ and SOCKOP records about them."""

    def __init__(self, w, tgid=100):
        self.w, self.tgid, self.conns = w, tgid, []

    def arrive(self, conn, parts=1, gap=20):
        w = self.w
        conn.ordinal += 1
        conn.req = Req(conn, conn.ordinal, w.now, parts)
        self.part(conn)
        for i in range(1, parts):
            w.after(i * w.rnd.randint(1, gap), self.part, conn)

    def part(self, conn):
        conn.unread.append(self.w.now)
        self.ready(conn, ("in", conn))

    def ready(self, conn, event):
        if conn.loop is not None:
            conn.loop.post(event)
        elif conn.reader is not None:
            p, conn.reader = conn.reader, None
            self.w.irq_wake(p)

    def recv(self, p, conn):
        q = conn.req
        q.got += len(conn.unread)
        conn.unread = []
        q.recvs.append((self.w.now, p.tid))
        self.w.mark(p, q)
        return q

    def recv_blocking(self, p, conn):
        yield self.w.step()
        q = None
        while q is None or q.got < q.parts:
            while not conn.unread:
                if q is None:
                    self.w.mark(p, None)
                conn.reader = p
                yield Spec(RECVFROM, conn.cookie & 0xff, fd_kind=6)
            q = self.recv(p, conn)
            yield self.w.step()
        return q

    def send(self, p, q, last=True):
        q.sends.append((self.w.now, p.tid))
        if last:
            q.over = True
            self.finish(q)

    def finish(self, q):
        self.tell(q, "REQ", self.w.now + self.w.rnd.choice((0, 1, 50)))
        self.again(q.conn)

    def tell(self, q, kind, ts):
        """REQ or OPEN_REQ, and SOCKOPs (each once) for the operations whose times it
        does not have."""
        c, none = q.conn, [(0, 0)]
        for what, ops, told in ((OP_RECV, q.recvs[1:], q.recvs_told),
                                (OP_SEND, q.sends[:-1], q.sends_told),
                                (OP_EAGAIN, q.eagain, q.eagain_told)):
            for t, tid in ops[len(told):]:
                self.op(what, t, tid, q)
                told.append(t)
        ns = 0
        for t, tid in q.eagain:
            ns += min([x for x, _ in q.sends if x > t], default=t) - t
        up = q.upstream[-1].cookie if q.upstream else 0
        first, last = (q.sends or none)[0], (q.sends or none)[-1]
        self.w.records.append({
            "k": kind, "ts": ts, "aux": 1 if kind == "REQ" else 0, "cookie": c.cookie,
            "ordinal": q.ordinal, "arrival": q.arrival, "first_recv": q.recvs[0][0],
            "last_recv": q.recvs[-1][0], "first_send": first[0], "last_send": last[0],
            "accepted": c.accepted, "recv_cnt": len(q.recvs), "send_cnt": len(q.sends),
            "eagain_ns": ns, "eagain_cnt": len(q.eagain), "recv_tid": q.recvs[0][1],
            "send_tid": last[1], "tgid": self.tgid, "up_cookie": up,
            "up_votes": 2 if up else 0, "up_calls": len(q.upstream)})

    def refresh(self):
        """What the iterator tells of requests that are not over."""
        for c in self.conns:
            if c.req and c.req.recvs and not c.req.over:
                self.tell(c.req, "OPEN_REQ", self.w.now)

    def again(self, conn):
        """The client thinks, then asks again."""
        w = self.w
        w.after(w.rnd.randint(2, 60), self.arrive, conn, w.rnd.choice((1, 1, 1, 2)))

    def op(self, what, ts, tid, q, cookie=0, flags=0):
        r = {"k": "SOCKOP", "ts": ts, "aux": what, "flags": flags, "tid": tid, "tgid": self.tgid,
             "cookie": cookie or q.conn.cookie}
        if flags & SO_LINKED:
            r["link_cookie"], r["link_ordinal"] = q.conn.cookie, q.ordinal
        else:
            r["ordinal"] = q.ordinal
        self.w.records.append(r)


class Loop:
    """An epoll instance with one thread on it."""

    def __init__(self, w):
        self.w, self.events, self.thread, self.asleep = w, [], None, False

    def post(self, event, waker=None):
        self.events.append(event)
        if self.asleep:
            self.asleep = False
            if waker:
                self.w.wake_up(self.thread, waker)
            else:
                self.w.irq_wake(self.thread)

    def wait(self, p):
        yield self.w.step()
        while not self.events:
            self.w.mark(p, None)
            self.thread, self.asleep = p, True
            yield Spec(EPOLL, 3)
            yield self.w.step()
        events, self.events = self.events, []
        return events


class Upstream:
    """A server elsewhere: answers after a while, in one part or several."""

    def __init__(self, net, loop):
        net.w.cookie += 1
        self.cookie, self.net, self.loop = net.w.cookie, net, loop
        self.parts = net.w.rnd.choice((1, 1, 2, 3))

    def call(self, p, q):
        q.upstream.append(self)
        self.net.op(OP_SEND, self.net.w.now, p.tid, q, self.cookie, SO_UPSTREAM | SO_LINKED)
        self.later(q)

    def later(self, q):
        self.net.w.after(self.net.w.rnd.randint(5, 80), self.loop.post, ("up", self, q))

    def reply(self, p, q):
        """The parts that are still to come."""
        self.parts -= 1
        if self.parts:
            self.later(q)
        self.net.op(OP_RECV, self.net.w.now, p.tid, q, self.cookie,
                    SO_UPSTREAM | SO_LINKED | SO_VOTE2)
        return self.parts


# ---- the stream -----------------------------------------------------------------------------

def interleave(records, rnd):
    """One of the orders in which rings could be drained: per task in order, else as it comes; what
    the iterators tell comes after all that was written before, and its TICK after that."""
    records = sorted(records, key=lambda r: r["ts"])
    ticks = [r for r in records if r["k"] == "TICK"]
    records = [r for r in records if r["k"] != "TICK"]
    out = [{"k": "OPTION", "ts": records[0]["ts"], "aux": 6, "value": 62}]  # x86-64
    i = 0
    for tick in ticks + [None]:
        chunk = []
        while i < len(records) and (not tick or records[i]["ts"] <= tick["ts"]):
            chunk.append(records[i])
            i += 1
        out += shuffle([r for r in chunk if r["k"] not in ("OPEN_TASK", "OPEN_REQ")
                        or r.get("flags", 0) & 8], rnd)
        out += [r for r in chunk if r["k"] in ("OPEN_TASK", "OPEN_REQ")
                and not r.get("flags", 0) & 8]
        if tick:
            out.append(tick)
    return out


def shuffle(records, rnd):
    rings = {}
    for r in records:
        rings.setdefault("small" if r["k"] in ("REQ", "TASK") else r.get("tid", 0), []).append(r)
    out, rings = [], list(rings.values())
    while rings:
        ring = rnd.choice(rings)
        for _ in range(min(len(ring), rnd.randint(1, 4))):
            out.append(ring.pop(0))
        rings = [x for x in rings if x]
    return out
