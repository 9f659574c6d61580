# SPDX-License-Identifier: Apache-2.0
"""What the answer tests share: the criticast program itself around a load, and its answers by the
client's own names (port, ordinal on the connection)."""
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time

import req_lib as q

CRITICAST = os.path.abspath(os.environ.get("CRITICAST", os.path.join(q.BUILD, "criticast")))
SHARE = 0.95  # of answers that have to be right


def run(*argv, **kw):
    return subprocess.run([CRITICAST, *map(str, argv)], stdin=subprocess.DEVNULL,
                          capture_output=True, **kw)


def need(*programs):
    """These programs, else the whole test is skipped with the reason."""
    for p in programs:
        if not shutil.which(p, path=os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin"):
            q.skip("no %s on this machine" % p)


class Tracer:
    """A criticast that traces pids while in its with block. args come before the pids; file is
    where it records to: it is made once the tracer is attached. Where nothing can be traced the
    whole test is skipped."""

    def __init__(self, pids, args=(), file=None):
        self.file = file or os.path.join(q.tmpdir(), "rec.criticast")
        if not args:  # room for a reader that does not get a CPU for a while: answers are judged
            # told live as well, so that `witness` can compare the words of then with a replay's
            args = ("top", "--json", "--top", 200, "--ring-bytes", "32M", "--record", self.file)
        self.argv = [CRITICAST, *map(str, args)]
        for p in pids:
            self.argv += ["--pid", str(p)]

    ended = False

    def __enter__(self):
        d = q.tmpdir()
        self.out, self.err = (open(os.path.join(d, n), "w+b") for n in ("out", "err"))
        self.p = q.start(self.argv, stdout=self.out, stderr=self.err)
        end = time.monotonic() + 90  # a busy machine takes its time
        while not os.path.exists(self.file):
            if self.p.poll() is not None or time.monotonic() > end:
                self.err.seek(0)
                err = self.err.read().decode().strip()
                if self.p.returncode == 3:
                    q.skip(err)
                print("the tracer has not attached: " + err)
                raise SystemExit(1)
            time.sleep(0.02)
        return self

    def __exit__(self, kind, *_):
        if kind is None and self.p.poll() is None:
            time.sleep(0.3)
            self.p.send_signal(signal.SIGINT)
        if not self.ended:
            self.wait()

    def wait(self):
        """For a tracer that ends by itself."""
        self.p.wait(90)  # as long as to attach
        self.ended = True
        self.err.seek(0)
        q.check("the tracer ended well", self.p.returncode == 0, self.err.read().decode().strip())


def analyze(file, *args):
    """The analysis of a recording, all requests; the counts that hold for every one are checked."""
    r = run("analyze", file, "--format", "json", "--top", 100000, *args)
    q.check("analyze", r.returncode == 0, r.stderr.decode())
    a = json.loads(r.stdout)
    reqs = a["requests"]
    inexact = [r["id"] for r in reqs if not exact(r)]
    q.check("sums are exact", reqs and not inexact, "%d of %d not" % (len(inexact), len(reqs)))
    q.check("no record dropped", a["counters"]["ring_drops"] == 0, str(a["counters"]["dropped"]))
    return a


def exact(req):
    """Depth-0 pieces follow each other from start to end."""
    t = req["start_ns"]
    for p in own_pieces(req):
        if p["start_ns"] != t:
            return False
        t = p["end_ns"]
    return t == req["end_ns"] and req["path_sum_ns"] == req["latency_ns"] == t - req["start_ns"]


def own_pieces(req, cls=None):
    return [p for p in req["path"] if p["depth"] == 0 and (cls is None or p["class"] == cls)]


def length(pieces):
    return sum(p["end_ns"] - p["start_ns"] for p in pieces)


def key(req):
    """(client port, ordinal on the connection)"""
    return int(req["peer"].rsplit(":", 1)[1]), int(req["id"].rsplit("#", 1)[1])


def overlap(a, b):
    return max(0, min(a[1], b[1]) - max(a[0], b[0]))


def run_delay(pid):
    """ns that the threads of a process and of its children were runnable without a CPU so far, by the
    kernel's own account."""
    ns, todo = 0, [pid]
    while todo:
        base = "/proc/%d/task" % todo.pop()
        for tid in os.listdir(base):
            with open("%s/%s/schedstat" % (base, tid)) as f:
                ns += int(f.read().split()[1])
            with open("%s/%s/children" % (base, tid)) as f:
                todo += map(int, f.read().split())
    return ns


def mostly(what, right, total, least=1):
    """right of total answers: at least SHARE of them, and enough of them to say so."""
    q.check(what, total >= least and right >= SHARE * total, "%d of %d" % (right, total))


def _upstream_conn(c):
    data = b""
    while part := c.recv(4096):
        data += part
        while b"\r\n\r\n" in data:
            head, data = data.split(b"\r\n\r\n", 1)
            path = head.split(b" ", 2)[1]
            answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", b"l", b"o"
            if b"/parts/" not in path:
                answer = (b"".join(answer),)
            for piece in answer:
                time.sleep(float(path.rsplit(b"/", 1)[1]) / 1000 / len(answer))
                c.sendall(piece)
    c.close()


def upstream(port):
    """A server that sleeps as many ms as the last part of the path says; with /parts/ before it, a
    third of it before each of three parts of its answer."""
    ls = socket.create_server(("127.0.0.1", port), backlog=64)
    while True:
        c, _ = ls.accept()
        c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=_upstream_conn, args=(c,), daemon=True).start()
