# SPDX-License-Identifier: Apache-2.0
"""Servers under load with a truth that is not ours: each load() returns what the server itself, its
log or its clients' clocks say about every request, by (client port, ordinal on the connection)."""
import contextlib
import io
import multiprocessing
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "live"))
import req_lib as q  # noqa: E402

SBIN = os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin"


def have(program):
    return shutil.which(program, path=SBIN)


@contextlib.contextmanager
def only_failures():
    """Of the lines of checks, those that say something."""
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            yield
    finally:
        lines = out.getvalue().splitlines()
        print("".join(x + "\n" for x in lines if not x.startswith("ok  ")), end="", flush=True)


class Req:
    """What is true of one request: how long it took; whom it called (a port, or None), how long that
    one slept, how long the client waited in all. since_recv: ns are from when it was read on."""
    __slots__ = ("ns", "up", "slept", "client_ns", "since_recv")

    def __init__(self, ns, call=(None, 0, 0), since_recv=False):
        self.ns, self.since_recv = ns, since_recv
        self.up, self.slept, self.client_ns = call


# ---- clients: processes of their own, so that one's clock does not show another's turn ------------


def in_processes(fn, args):
    """fn(*args[i]) each in a process; the dictionaries they return, as one."""
    with multiprocessing.get_context("fork").Pool(len(args), _plain_signals) as pool:
        return {k: v for part in pool.starmap(fn, args) for k, v in part.items()}


def _plain_signals():
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def connect(port):
    s = socket.create_connection(("127.0.0.1", port))
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s


def line_client(port, commands, answer_lines=1, pause=0):
    """Sends each command when the last one's answer is there: its clock, by (port, ordinal)."""
    log = {}
    with connect(port) as s:
        me = s.getsockname()[1]
        for i, c in enumerate(commands):
            t0 = time.monotonic_ns()
            s.sendall(c)
            left = answer_lines
            while left > 0:
                left -= s.recv(65536).count(b"\n")
            log[me, i + 1] = (t0, time.monotonic_ns())
            if pause:
                time.sleep(pause)
    return log


def http_client(port, paths, tls=False):
    log = {}
    raw = connect(port)
    me = raw.getsockname()[1]
    if tls:
        ctx = ssl.create_default_context()
        ctx.check_hostname, ctx.verify_mode = False, ssl.CERT_NONE
        raw = ctx.wrap_socket(raw)
    with raw as s:
        for i, path in enumerate(paths):
            t0 = time.monotonic_ns()
            q.http_get(s, path)
            log[me, i + 1] = (t0, time.monotonic_ns())
    return log


def spans(log):
    return {k: Req(t1 - t0) for k, (t0, t1) in log.items()}


# ---- a slow upstream: threads, and a port of its own for every client ------------------------------
# Clients that are served at the same time call different ports, so a request that is linked to the
# call of another one shows a port that is not its own.


def slow_conn(c):
    data = b""
    while part := c.recv(4096):
        data += part
        while b"\r\n\r\n" in data:
            head, data = data.split(b"\r\n\r\n", 1)
            time.sleep(float(head.split(b" ", 2)[1].rsplit(b"/", 1)[1]) / 1000)
            c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
    c.close()


def slow_port(ls):
    while True:
        c, _ = ls.accept()
        c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=slow_conn, args=(c,), daemon=True).start()


def slow_server(socks):
    threads = [threading.Thread(target=slow_port, args=(s,)) for s in socks]
    [t.start() for t in threads]
    [t.join() for t in threads]


def slow_servers(n):
    """A process that answers /.../MS after MS ms on n ports; (pid, ports)."""
    socks = [socket.create_server(("127.0.0.1", 0), backlog=64) for _ in range(n)]
    ports = [s.getsockname()[1] for s in socks]
    pid = q.serve(slow_server, socks)
    [s.close() for s in socks]
    return pid, ports


def proxy_client(port, up, i, n, delays):
    """{(port, ordinal): (upstream port, ns it sleeps, ns this client waits)}"""
    slept = [delays[(i + k * 7) % len(delays)] for k in range(n)]
    log = http_client(port, ["/%d/%d" % (up, d) for d in slept])
    return {k: (up, slept[k[1] - 1] * 1e6, t1 - t0) for k, (t0, t1) in log.items()}


def proxy_clients(port, ups, n, delays):
    return in_processes(proxy_client, [(port, u, i, n, delays) for i, u in enumerate(ups)])


# ---- servers: each gives (pid, load) ---------------------------------------------------------------


def nginx_truth(d, calls=None):
    """Its log: a line when a request is over."""
    return {k: Req(row[1] * 1e9, calls[k]) if calls else Req(row[1] * 1e9)
            for k, row in q.access_log(d).items()}


def nginx_files(path, size, clients=4, n=500):
    port = q.free_port()
    p, d = q.nginx("server { listen 127.0.0.1:%d; root @D; sendfile on; }" % port)
    with open(os.path.join(d, path), "wb") as f:
        f.write(b"x" * size)
    q.wait_port(port)

    def load():
        in_processes(http_client, [(port, ["/" + path] * n)] * clients)
        time.sleep(0.2)
        return nginx_truth(d)
    return p.pid, load


def nginx_tls():
    port, d = q.free_port(), q.tmpdir()
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj",
                    "/CN=x", "-keyout", d + "/key", "-out", d + "/cert"], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    p, log = q.nginx("""server { listen 127.0.0.1:%d ssl; ssl_certificate %s/cert;
ssl_certificate_key %s/key; return 200 "hello"; }""" % (port, d, d))
    q.wait_port(port)

    def load():
        in_processes(http_client, [(port, ["/"] * 300, True)] * 4)
        time.sleep(0.2)
        return nginx_truth(log)
    return p.pid, load


def nginx_proxy(kept, clients=8, n=60, delays=(0, 1, 3, 10, 30)):
    port, (_, ups) = q.free_port(), slow_servers(clients)
    groups = "".join("upstream u%d { server 127.0.0.1:%d; keepalive 16; }" % (u, u) for u in ups)
    where = "".join("""location /%d/ { proxy_pass http://%s; %s }""" % (
        u, "u%d" % u if kept else "127.0.0.1:%d" % u,
        'proxy_http_version 1.1; proxy_set_header Connection "";' if kept else "") for u in ups)
    p, d = q.nginx("%s server { listen 127.0.0.1:%d; %s }" % (groups, port, where), workers=1)
    q.wait_port(port)

    def load():
        calls = proxy_clients(port, ups, n, delays)
        time.sleep(0.2)
        return nginx_truth(d, calls)
    return p.pid, load


def nginx_batches(clients=2, batches=80, depth=5):
    """All of a batch is read at once: to its socket that is one exchange with several sends."""
    port = q.free_port()
    p, d = q.nginx("server { listen 127.0.0.1:%d; root @D; }" % port)
    with open(os.path.join(d, "page"), "wb") as f:
        f.write(b"\n")
    q.wait_port(port)
    get = b"GET /page HTTP/1.1\r\nHost: x\r\n\r\n" * depth
    with connect(port) as s:
        lines = http_lines(s)
    return p.pid, lambda: spans(in_processes(
        line_client, [(port, [get] * batches, depth * lines)] * clients))


def http_lines(s):
    s.sendall(b"GET /page HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    answer = b""
    while part := s.recv(4096):
        answer += part
    return answer.count(b"\n")


def nginx_h2(delays=(2, 5, 10, 20)):
    """Streams that are answered at different times, on the same connections."""
    port, (_, (up,)) = q.free_port(), slow_servers(1)
    p, d = q.nginx("""server { listen 127.0.0.1:%d http2;
location / { proxy_pass http://127.0.0.1:%d; } }""" % (port, up))
    q.wait_port(port)

    def load():
        subprocess.run(["h2load", "-n", "400", "-c", "2", "-m", "10"] +
                       ["http://127.0.0.1:%d/%d" % (port, x) for x in delays],
                       check=True, stdout=subprocess.DEVNULL)
        time.sleep(0.2)
        return nginx_truth(d)
    return p.pid, load


def redis_server(*args):
    port = q.free_port()
    p = q.start(["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir",
                 q.tmpdir(), "--enable-debug-command", "yes", *args])
    q.wait_port(port)
    return p.pid, port


def redis_plain(*args, clients=4, n=1500):
    pid, port = redis_server(*args)
    commands = [b"SET k%d v\r\n" % (i % 7) for i in range(n)]  # one line each
    return pid, lambda: spans(in_processes(line_client, [(port, commands)] * clients))


def redis_slowlog(n=12):
    """What redis itself says of its slow commands."""
    pid, port = redis_server("--slowlog-log-slower-than", "5000")
    commands = [b"DEBUG SLEEP 0.0%d\r\n" % (1 + i % 4) for i in range(n)]

    def load():
        log = in_processes(line_client, [(port, commands)])
        with connect(port) as s:
            s.sendall(b"SLOWLOG GET 100\r\n")
            time.sleep(0.3)
            text = s.recv(1 << 20).decode()
            me = s.getsockname()[1]
        rows = re.findall(r"\*6\r\n:\d+\r\n:\d+\r\n:(\d+)\r\n", text)
        times = [int(us) * 1000 for us in reversed(rows)]  # the newest comes first
        truth = {k: Req(ns) for k, ns in zip(sorted(log), times)} if len(times) == len(log) else {}
        truth[me, 1] = None  # this question
        return truth
    return pid, load


def redis_batches(clients=4, batches=100, depth=16):
    """All of a batch is read at once and answered at once: to its socket that is one exchange."""
    pid, port = redis_server()
    return pid, lambda: spans(in_processes(
        line_client, [(port, [b"SET k v\r\n" * depth] * batches, depth)] * clients))


def memcached():
    port = q.free_port()
    p = q.start(["memcached", "-u", "root", "-l", "127.0.0.1", "-p", str(port), "-t", "4"])
    q.wait_port(port)
    commands = [b"set k 0 0 5\r\nhello\r\n"] * 1000
    return p.pid, lambda: spans(in_processes(line_client, [(port, commands)] * 4))


def by_order(lines):
    """(port, ordinal): fields, of lines that begin with the client's port, in the order written."""
    rows, seen = {}, {}
    for line in lines:
        port, *rest = line.split()
        seen[port] = seen.get(port, 0) + 1
        rows[int(port), seen[port]] = rest
    return rows


def haproxy(clients=8, n=60, delays=(0, 1, 3, 10, 30)):
    port, d, (_, ups) = q.free_port(), q.tmpdir(), slow_servers(clients)
    with open(d + "/cfg", "w") as f:
        f.write("""global
 log stdout format raw local0
 nbthread 2
defaults
 mode http
 log global
 log-format "%%cp %%Ta"
 timeout connect 5s
 timeout client 30s
 timeout server 30s
frontend f
 bind 127.0.0.1:%d
 use_backend b%%[path,field(2,/)]
""" % port)
        for u in ups:
            f.write("backend b%d\n server s 127.0.0.1:%d\n" % (u, u))
    out = open(d + "/log", "w")
    p = q.start([have("haproxy"), "-db", "-f", d + "/cfg"], stdout=out)
    q.wait_port(port)

    def load():
        calls = proxy_clients(port, ups, n, delays)
        time.sleep(0.3)
        with open(d + "/log") as log:
            rows = by_order(x for x in log if re.fullmatch(r"\d+ -?\d+\n", x))
        return {k: Req(int(ms[0]) * 1e6, calls[k]) for k, ms in rows.items() if k in calls}
    return p.pid, load


def node(after_timer, clients=8, n=60, delays=(0, 1, 3, 10, 30)):
    port, d, (_, ups) = q.free_port(), q.tmpdir(), slow_servers(clients)
    out = open(d + "/log", "w")
    p = q.start([have("node"), os.path.join(HERE, "proxy.js"), str(port),
                 "timer" if after_timer else "tick"], stdout=out)
    q.wait_port(port)

    def load():
        calls = proxy_clients(port, ups, n, delays)
        time.sleep(0.3)
        with open(d + "/log") as log:
            rows = by_order(log)
        return {k: Req(int(ns[0]), calls[k]) for k, ns in rows.items()}
    return p.pid, load


def threads_of_ours():
    pid, (port,) = slow_servers(1)
    paths = ["/%d" % (i % 4) for i in range(200)]
    return pid, lambda: spans(in_processes(http_client, [(port, paths)] * 4))


def ours(kind, clients=4, n=400):
    """ours.c: from when it had the request to when the answer was out, by its own clock."""
    log = os.path.join(q.tmpdir(), "log")
    p = q.start([os.path.join(q.BUILD, "tests/accuracy/ours"), kind, log], stdout=subprocess.PIPE, text=True)
    port = int(p.stdout.readline())
    lines = [b"%d\n" % (0 if i % 3 else 300 * (i % 4)) for i in range(n)]  # some sleep, most do not

    def load():
        in_processes(line_client, [(port, lines)] * clients)
        time.sleep(0.2)
        p.terminate()
        p.wait()
        with open(log) as f:
            rows = [list(map(int, line.split())) for line in f]
        return {(port, n): Req(out - had, since_recv=True) for port, n, had, out in rows}
    return p.pid, load
