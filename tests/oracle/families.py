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
            yield S.Spec(S.FUTEX, self.addr + p.tid * 4,
                         (self.addr, 0x189, 1, 0, 0, 0), self.addr + p.tid * 4)
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
    return net


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
    return net


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
    return net


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
                    if what == "up":
                        x.reply(p, q)
                        yield w.work(6)
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
    return net


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
    return net


def forks(w):
    """A child for each request; it answers and exits."""
    net = S.Net(w)
    loop = S.Loop(w)
    locks = [S.Mutex(w, 0x7000)]

    def child(p, q):
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
    return net


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
    return nets[0]


FAMILIES = {
    "threads": (threads, {}), "helpers": (helpers, {}), "pool": (pool, {}), "loops": (loops, {}),
    "offload": (offload, {}), "forks": (forks, {}), "two_processes": (two_processes, {}),
    "threads_lossy": (threads, {"loss": 0.12}), "pool_lossy": (pool, {"loss": 0.12}),
    "loops_lossy": (loops, {"loss": 0.12}), "helpers_lossy": (helpers, {"loss": 0.12}),
    "storm": (threads, {"ncpu": 4, "quantum": (1, 6)}),
}


def make(name, seed, length=None):
    build, opts = FAMILIES[name]
    rnd = random.Random(f"{name}/{seed}")
    opts = dict({"ncpu": rnd.choice((1, 2, 2, 3))}, **opts)
    w = S.World(f"{name}:{seed}", **opts)
    w.kthread = S.Proc(800, 800, "jbd2")
    w.stranger = S.Proc(900, 900, "stranger")
    w.records.append({"k": "TARGET", "ts": w.t0 - 20, "tgid": 100})
    build(w)
    w.run(w.t0 + (length or rnd.randint(150, 450)))
    w.stop()
    for _ in range(4):
        p = rnd.choice(list(w.procs.values()))
        lo = rnd.randint(p.start, w.now - 1) if p.start < w.now - 1 else w.t0
        w.queries.append((p.tid, lo, rnd.randint(lo + 1, w.now)))
    return w


def stream(w, seed, ticks=0):
    """The trace's records in one of the orders in which they can come."""
    return S.interleave(w.records, random.Random(f"order/{seed}"), ticks)
