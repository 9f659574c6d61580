# SPDX-License-Identifier: Apache-2.0
"""Families of schedules: each is one kind of server or one kind of trouble. make(name, seed)
returns a World that has run to its end; its records are the trace."""

import random

import schedule as S


def fsync(w, p):
    """Waits for the disk: ended by a kernel thread or by the interrupt itself."""
    def done():
        if w.rnd.random() < 0.5:
            w.wake_up(p, w.kthread, S.CTX_KTHREAD)
        else:
            w.irq_wake(p)
    yield w.step()
    w.after(w.rnd.randint(2, 40), done)
    yield S.Spec(S.FSYNC, 4, state=2)


def sleep(w, p):
    yield w.step()
    w.after(w.rnd.randint(1, 30), w.irq_wake, p)
    yield S.Spec(S.NANOSLEEP)


def outside(w, p):
    """Waits for a process that is not traced."""
    yield w.step()
    w.after(w.rnd.randint(1, 30), w.wake_up, p, w.stranger)
    yield S.Spec(S.READ, 9, fd_kind=5)


def locked(w, p, m, inner=True):
    yield from m.lock(p)
    yield w.work()
    if inner and w.rnd.random() < 0.6:
        yield from w.rnd.choice((fsync, sleep))(w, p)
        yield w.work(5)
    m_unlock = m.unlock(p)
    yield from m_unlock


class Helpers:
    """Threads that do jobs for others: the client waits until its job is done."""

    def __init__(self, w, n, addr):
        self.w, self.jobs = w, S.Queue(w, addr)
        self.addr = addr + 64
        for _ in range(n):
            w.spawn("helper", self.main)

    def main(self, p):
        while True:
            job = yield from self.jobs.get(p)
            yield self.w.work(30)
            if self.w.rnd.random() < 0.2:
                yield from fsync(self.w, p)
            job["done"] = True
            if job["waits"]:
                job["waits"] = False
                self.w.wake_up(job["client"], p)
            yield self.w.step()

    def call(self, p):
        job = {"client": p, "done": False, "waits": False}
        yield from self.jobs.put(p, job)
        if self.w.rnd.random() < 0.3:
            yield self.w.work(10)
        while not job["done"]:
            job["waits"] = True
            yield S.Spec(S.FUTEX, self.addr + p.tid * 16,
                         (self.addr, 0x189, 0, 0, 0, 0), self.addr + p.tid * 16)
        yield self.w.step()


def serve(w, p, locks, helpers=None, odd=True):
    """What a server does for one request."""
    yield w.work()
    for _ in range(w.rnd.choice((0, 1, 1, 2, 3))):
        u = w.rnd.random()
        if locks and u < 0.6:
            yield from locked(w, p, w.rnd.choice(locks))
        elif helpers and u < 0.8:
            yield from helpers.call(p)
        elif odd and u < 0.88:
            yield from fsync(w, p)
        elif odd and u < 0.94:
            yield from sleep(w, p)
        elif odd:
            yield from outside(w, p)
        yield w.work()


def conns(w, net, n, loop=None):
    out = []
    for _ in range(n):
        c = S.Conn(net, loop)
        out.append(c)
        w.after(w.rnd.randint(1, 60), net.arrive, c, w.rnd.choice((1, 1, 2)))
    return out


def reply(w, net, p, q):
    if w.rnd.random() < 0.25:
        net.send(p, q, last=False)
        yield w.work()
    net.send(p, q)
    yield w.step()


# ---- families -------------------------------------------------------------------------------

def threads(w, loss=False):
    """A thread for each connection, mutexes with barging and sleeping holders."""
    net = S.Net(w)
    locks = [S.Mutex(w, 0x1000 + 0x40 * i) for i in range(w.rnd.randint(1, 2))]

    def main(p, conn):
        while True:
            q = yield from net.recv_blocking(p, conn)
            yield from serve(w, p, locks)
            yield from reply(w, net, p, q)

    def background(p):
        while True:
            yield from sleep(w, p)
            yield from locked(w, p, w.rnd.choice(locks))

    for c in conns(w, net, w.rnd.randint(3, 7)):
        w.spawn("conn", main, c)
    if w.rnd.random() < 0.5:
        w.spawn("background", background)
    w.locks = locks
    return [net]


def helpers(w):
    """A thread for each connection; few helper threads do jobs for all of them."""
    net = S.Net(w)
    hs = Helpers(w, w.rnd.randint(1, 2), 0x8000)

    def main(p, conn):
        while True:
            q = yield from net.recv_blocking(p, conn)
            yield w.work(8)
            yield from hs.call(p)
            yield w.work(8)
            yield from reply(w, net, p, q)

    for c in conns(w, net, w.rnd.randint(2, 4)):
        w.spawn("conn", main, c)
    return [net]


def pool(w):
    """One thread receives, a pool with too few workers answers."""
    net = S.Net(w)
    loop = S.Loop(w)
    work = S.Queue(w, 0x2000)
    locks = [S.Mutex(w, 0x3000)] if w.rnd.random() < 0.6 else []

    def receiver(p):
        while True:
            for _, c in (yield from loop.wait(p)):
                if not c.unread:
                    continue
                q = net.recv(p, c)
                yield w.work(4)
                if q.got == q.parts:
                    yield from work.put(p, q)

    def worker(p):
        while True:
            q = yield from work.get(p)
            yield from serve(w, p, locks)
            yield from reply(w, net, p, q)

    conns(w, net, w.rnd.randint(2, 5), loop)
    w.spawn("receiver", receiver)
    for _ in range(w.rnd.randint(1, 2)):
        w.spawn("worker", worker)
    return [net]


def loops(w):
    """Event loops with many sockets: upstream calls, late bodies, full send buffers."""
    net = S.Net(w)
    lock = S.Mutex(w, 0x5000)

    def main(p, loop):
        while True:
            for what, x, *rest in (yield from loop.wait(p)):
                if what == "in":
                    if not x.unread:
                        continue
                    q = net.recv(p, x)
                    yield w.work(8)
                    if q.got < q.parts:
                        continue
                    if w.rnd.random() < 0.4:
                        S.Upstream(net, loop).call(p, q)
                        yield w.step()
                        continue
                else:
                    q = rest[0]
                    w.mark(p, q)
                    if what == "up":
                        more = x.reply(p, q)
                        yield w.work(6)
                        if more:
                            net.send(p, q, last=False)
                            yield w.step()
                            continue
                yield from answer(p, loop, q, what)

    def answer(p, loop, q, what):
        u = w.rnd.random()
        if u < 0.2:
            yield from fsync(w, p)
        elif u < 0.35:
            yield from locked(w, p, lock)
        if what != "out" and w.rnd.random() < 0.2:
            net.send(p, q, last=False)
            yield w.step()
            q.eagain.append((w.now, p.tid))
            w.after(w.rnd.randint(3, 50), loop.post, ("out", None, q))
            yield w.step()
            return
        yield w.work(8)
        net.send(p, q)
        yield w.step()

    for _ in range(w.rnd.randint(1, 2)):
        loop = S.Loop(w)
        conns(w, net, w.rnd.randint(2, 4), loop)
        w.spawn("loop", main, loop)
    return [net]


def offload(w):
    """An event loop that hands slow work to threads, which wake the loop when it is done."""
    net = S.Net(w)
    loop = S.Loop(w)
    work = S.Queue(w, 0x6000)

    def main(p):
        while True:
            for what, x in (yield from loop.wait(p)):
                if what == "in":
                    if not x.unread:
                        continue
                    q = net.recv(p, x)
                    yield w.work(6)
                    if q.got == q.parts:
                        yield from work.put(p, q)
                else:
                    w.mark(p, x)
                    yield w.work(6)
                    net.send(p, x)
                    yield w.step()

    def worker(p):
        while True:
            q = yield from work.get(p)
            yield w.work(30)
            if w.rnd.random() < 0.3:
                yield from fsync(w, p)
            loop.post(("done", q), p)
            yield w.step()

    conns(w, net, w.rnd.randint(1, 4), loop)
    w.spawn("loop", main)
    for _ in range(w.rnd.randint(1, 3)):
        w.spawn("worker", worker)
    return [net]


def forks(w):
    """A child for each request; it answers and exits."""
    net = S.Net(w)
    loop = S.Loop(w)
    locks = [S.Mutex(w, 0x7000)]

    def child(p, q):
        w.mark(p, q)
        yield from serve(w, p, locks)
        yield from reply(w, net, p, q)

    def main(p):
        while True:
            for _, c in (yield from loop.wait(p)):
                if not c.unread:
                    continue
                q = net.recv(p, c)
                yield w.work(6)
                if q.got == q.parts:
                    w.spawn("child", child, q, parent=p)
                    yield w.step()

    conns(w, net, w.rnd.randint(1, 4), loop)
    w.spawn("main", main)
    return [net]


def two_processes(w):
    """Two processes with a lock at the same address: not the same lock."""
    nets = []
    for tgid in (100, 200):
        net = S.Net(w, tgid)
        m = S.Mutex(w, 0x1000)

        def main(p, conn, net=net, m=m):
            while True:
                q = yield from net.recv_blocking(p, conn)
                yield from serve(w, p, [m])
                yield from reply(w, net, p, q)

        for c in conns(w, net, 2):
            w.spawn("conn", main, c, tgid=tgid)
        nets.append(net)
    return nets


def barging(w):
    """One lock, many threads, holders that sleep: most of the time is lock wait."""
    net = S.Net(w)
    m = S.Mutex(w, 0x1000)

    def main(p, conn):
        while True:
            q = yield from net.recv_blocking(p, conn)
            for _ in range(w.rnd.randint(1, 4)):
                yield from locked(w, p, m)
                yield w.work(3)
            yield from reply(w, net, p, q)

    def thief(p):
        while True:
            yield from sleep(w, p)
            for _ in range(w.rnd.randint(1, 3)):
                yield from locked(w, p, m, inner=False)

    for c in conns(w, net, w.rnd.randint(3, 6)):
        w.spawn("conn", main, c)
    for _ in range(w.rnd.randint(1, 2)):
        w.spawn("thief", thief)
    w.locks = [m]
    return [net]


def mixed(w):
    """A receiver, workers, helpers, locks they all share, children for some requests."""
    net = S.Net(w)
    loop = S.Loop(w)
    work = S.Queue(w, 0x2000)
    hs = Helpers(w, w.rnd.randint(1, 2), 0x8000)
    locks = [S.Mutex(w, 0x3000)]

    def child(p, q):
        w.mark(p, q)
        yield from serve(w, p, locks)
        yield from reply(w, net, p, q)

    def receiver(p):
        while True:
            for _, c in (yield from loop.wait(p)):
                if not c.unread:
                    continue
                q = net.recv(p, c)
                yield w.work(4)
                if q.got == q.parts:
                    if w.rnd.random() < 0.2:
                        w.spawn("child", child, q, parent=p)
                        yield w.step()
                    else:
                        yield from work.put(p, q)

    def worker(p):
        while True:
            q = yield from work.get(p)
            yield w.work(4)
            if w.rnd.random() < 0.5:
                yield from locked(w, p, locks[0])
            if w.rnd.random() < 0.5:
                net.send(p, q, last=False)
                yield from hs.call(p)
            yield from serve(w, p, locks)
            net.send(p, q)
            yield w.step()

    def other(p, conn):
        while True:
            q = yield from net.recv_blocking(p, conn)
            yield from serve(w, p, locks, hs)
            yield from reply(w, net, p, q)

    conns(w, net, w.rnd.randint(2, 4), loop)
    w.spawn("receiver", receiver)
    for _ in range(w.rnd.randint(1, 2)):
        w.spawn("worker", worker)
    for c in conns(w, net, w.rnd.randint(1, 2)):
        w.spawn("other", other, c)
    w.locks = locks
    return [net]


FAMILIES = {
    "threads": (threads, {}), "helpers": (helpers, {}), "pool": (pool, {}), "loops": (loops, {}),
    "offload": (offload, {}), "forks": (forks, {}), "two_processes": (two_processes, {}),
    "threads_lossy": (threads, {"loss": 0.12}), "pool_lossy": (pool, {"loss": 0.12}),
    "loops_lossy": (loops, {"loss": 0.12}), "helpers_lossy": (helpers, {"loss": 0.12}),
    "barging": (barging, {"ncpu": 3}), "barging_lossy": (barging, {"ncpu": 3, "loss": 0.1}),
    "mixed": (mixed, {"ncpu": 3}), "mixed_lossy": (mixed, {"ncpu": 3, "loss": 0.08}),
    "soup": (None, {}), "chaos": (None, {}),
    "storm": (threads, {"ncpu": 4, "quantum": (1, 6)}),
}


class Soup(S.World):
    """No machine at all: tasks of two processes block, wake and run as dice say; losses and second
    wakes included. There are no requests; spans of tasks are asked for."""

    WAITS = ((S.FUTEX, 128, 0x40), (S.FUTEX, 128, 0x40), (S.FUTEX, 128, 0x80), (S.FUTEX, 0x189, 0xc0),
             (S.EPOLL, 0, 3), (S.NANOSLEEP, 0, 0), (-2, 0, 0))

    def __init__(self, seed):
        self.rnd = random.Random(seed)
        self.t0 = self.now = 1000
        self.records, self.queries, self.nets = [], [], []
        self.released = {}  # key -> when last
        self.all = []
        for i in range(self.rnd.randint(3, 8)):
            p = S.Proc(101 + i, self.rnd.choice((100, 100, 200)), "soup")
            p.state, p.last_in, p.start = "run", self.now, 1
            self.all.append(p)
            self.open_task(p, 9, self.now)

    def some(self, state):
        return [p for p in self.all if p.state == state]

    def step(self):
        rnd = self.rnd
        self.now += rnd.choice((0, 1, 1, 2, 4))
        run, blocked, ready = self.some("run"), self.some("blocked"), self.some("ready")
        u = rnd.random()
        if u < 0.4 and len(run) > 1:
            self.go_off(rnd.choice(run), rnd.random() < 0.25)
        elif u < 0.7 and blocked and run:
            self.wake(rnd.choice(blocked), self.waker(run))
        elif ready:
            self.go_on(rnd.choice(ready))

    def waker(self, run):
        return self.rnd.choice(run)

    def go_off(self, p, preempted):
        if p.last_in == self.now:
            return
        p.out, p.preempted, p.wake, p.waker, p.ctx = self.now, preempted, 0, None, 0
        p.woken_again = 0
        nr, op, key = self.rnd.choice(self.WAITS)
        p.spec = S.Spec(-1, state=0) if preempted else S.Spec(
            nr, key, (key, op, 2 if op == 128 else 0, 0, 0, 0), key,
            self.rnd.choice(self.all).tid if op == 128 and self.rnd.random() < 0.3 else 0)
        p.state = "ready" if preempted else "blocked"

    def wake(self, p, by):
        if self.released.get(p.spec.key) == self.now:
            self.now += 1  # two releases of one lock at one time: no rule tells them apart
        self.released[p.spec.key] = self.now
        u = self.rnd.random()
        p.wake, p.waker = self.now, by
        p.state = "ready"
        if u > 0.85:
            p.ctx = self.rnd.choice((S.CTX_SOFTIRQ, S.CTX_HARDIRQ))
        elif u > 0.75:
            p.ctx, p.waker = S.CTX_IDLE, None
        elif u > 0.7:
            p.wake, p.waker = 0, None
            self.go_on(p)

    def go_on(self, p):
        if p.out == self.now:
            self.now += 1
        if p.wake and p.wake < self.now and self.rnd.random() < 0.05:
            self.records.append({"k": "WAKE", "ts": self.rnd.randint(p.wake + 1, self.now),
                                 "tid": p.tid, "waker_tid": 0, "waker_tgid": 0, "key": 0})
        self.loss = 0 if self.records and self.records[-1]["k"] == "WAKE" else 0.08
        self.episode(p, 0)
        p.state, p.last_in = "run", self.now

    def refresh(self, last=False):
        self.procs = {p.tid: p for p in self.all}
        S.World.refresh(self, self.nets, last)

    def make(self, ticks):
        steps = self.rnd.randint(30, 200)
        at = [self.rnd.randint(1, steps) for _ in range(ticks)]
        for i in range(steps):
            self.step()
            if i in at:
                self.now += 1
                self.refresh()
        self.now += 1
        self.refresh(last=True)
        for _ in range(12):
            lo = self.rnd.randint(self.t0, self.now - 1)
            self.queries.append((self.rnd.choice(self.all).tid, lo, self.rnd.randint(lo + 1, self.now)))
        return self


class Chaos(Soup):
    """Soup with requests: whoever runs may receive, answer or fork, in no sensible order. Nobody's
    program does this; the rules have an answer all the same."""

    def __init__(self, seed):
        super().__init__(seed)
        for p in self.all:
            p.tgid = 100
        self.net = S.Net(self)
        self.nets = [self.net]
        self.net.again = lambda conn: None
        self.cookie, self.busy = 0x10, {}
        self.conns = [S.Conn(self.net) for _ in range(self.rnd.randint(1, 4))]
        for r in self.records:
            r["tgid"] = 100

    def waker(self, run):
        p = self.rnd.choice(run)
        if self.busy.get(p.tid) == self.now:
            self.now += 1  # one thread does one thing at a time
        self.busy[p.tid] = self.now
        return p

    def step(self):
        super().step()
        free = [p for p in self.some("run") if p.last_in < self.now
                and self.busy.get(p.tid, 0) < self.now]
        if not free or self.rnd.random() < 0.6:
            return
        p, c = self.rnd.choice(free), self.rnd.choice(self.conns)
        self.busy[p.tid] = self.now
        q = c.req
        if q is None:
            c.ordinal += 1
            c.req = S.Req(c, c.ordinal, self.now, 1)
        elif not q.recvs:
            q.recvs.append((self.now, p.tid))
        elif self.now > (q.sends or q.recvs)[-1][0]:
            u = self.rnd.random()
            if u < 0.15 and not q.sends and q.recvs[-1][0] < self.now:
                q.recvs.append((self.now, p.tid))
            elif u < 0.3:
                self.net.send(p, q, last=False)
            elif u < 0.65:
                self.net.send(p, q)
                c.req = None


def make(name, seed, length=None, ticks=0):
    w = build(name, seed, length, ticks)
    w.family = name
    return w


def build(name, seed, length, ticks):
    if name == "chaos":
        return Chaos(f"chaos:{seed}").make(ticks)
    if name == "soup":
        return Soup(f"soup:{seed}").make(ticks)
    program, opts = FAMILIES[name]
    rnd = random.Random(f"{name}/{seed}")
    opts = dict({"ncpu": rnd.choice((1, 2, 2, 3))}, **opts)
    w = S.World(f"{name}:{seed}", **opts)
    w.kthread = S.Proc(800, 800, "jbd2")
    w.stranger = S.Proc(900, 900, "stranger")
    w.records.append({"k": "TARGET", "ts": w.t0 - 20, "tgid": 100})
    nets = program(w)
    end = w.t0 + (length or rnd.randint(150, 450))
    for at in sorted(rnd.randint(w.t0 + 1, end) for _ in range(ticks)):
        w.run(at)
        w.refresh(nets)
    w.run(end)
    w.refresh(nets, last=True)
    for _ in range(4):
        p = rnd.choice(list(w.procs.values()))
        lo = rnd.randint(p.start, w.now - 1) if p.start < w.now - 1 else w.t0
        w.queries.append((p.tid, lo, rnd.randint(lo + 1, w.now)))
    return w


def stream(w, seed):
    """The trace's records in one of the orders in which they can come."""
    return S.interleave(w.records, random.Random(f"order/{seed}"))
