# SPDX-License-Identifier: Apache-2.0
"""What the request tests share: servers of their own on free ports, the probe, the closing line."""
import atexit
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

BUILD = os.environ.get("BUILD", "build/release")
PROBE = os.path.join(BUILD, "tests/live/req_probe")

# CC_RQ_*, CC_END_*, CC_OP_*, CC_SO_* of src/core/event.h
RESUMED, STREAM, NO_REPLY, UNSOLICITED, ACCEPTQ, LATE, SETUP, BUSY = (1 << i for i in range(8))
SPLICE_IN, ORDINAL_GE, UDP, UNIX, CONCURRENT, RETOLD, BY_PROXY = (1 << i for i in range(8, 15))
END_NONE, END_NEXT, END_QUIET, END_FIN, END_EOF, END_RST, END_STOP, END_EXIT = range(8)
OP_RECV, OP_SEND, OP_CONNECT, OP_ACCEPT, OP_EOF, OP_CLOSE, OP_EAGAIN, OP_DATA = range(1, 9)
SO_UPSTREAM, SO_LINKED, SO_VOTE2 = 1, 2, 4

_passed = _failed = _skipped = 0
_cleanup = []


def skip(why):
    print("SKIPPED: " + why)
    print("criticast live tests: " + why)
    sys.exit(77)


def need(*programs):
    if os.geteuid() != 0:
        skip("live tracing needs root")
    if not os.access(PROBE, os.X_OK):
        skip("no %s: built without live tracing" % PROBE)
    for p in programs:
        if not shutil.which(p, path=os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin"):
            skip("no %s on this machine" % p)


def check(what, ok, detail=""):
    global _passed, _failed
    if ok:
        _passed += 1
    else:
        _failed += 1
    print("%s %s %s" % ("ok  " if ok else "FAIL", what, detail))
    sys.stdout.flush()


def equal(what, got, want):
    check(what, got == want, "%s, expected %s" % (got, want))


def finish():
    print("%d passed, %d failed, %d skipped" % (_passed, _failed, _skipped))
    sys.exit(1 if _failed else 0)


def skipped(what, why):
    global _skipped
    _skipped += 1
    print("skip %s: %s" % (what, why))


def at_end(fn, *args):
    _cleanup.append((fn, args))


def clean_up():
    while _cleanup:
        fn, args = _cleanup.pop()
        try:
            fn(*args)
        except Exception as e:  # go on with the others
            print("cleanup: %s" % e, file=sys.stderr)


atexit.register(clean_up)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))


def tmpdir(beneath=None):
    d = tempfile.mkdtemp(prefix="req-test-", dir=beneath and os.path.abspath(beneath))
    os.chmod(d, 0o755)
    at_end(shutil.rmtree, d, True)
    return d


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def stop_process(p):
    if p.poll() is None:
        p.terminate()
        try:
            p.wait(5)
        except subprocess.TimeoutExpired:
            p.kill()
            p.wait()


def start(argv, **kw):
    kw.setdefault("stdout", subprocess.DEVNULL)
    kw.setdefault("stderr", subprocess.DEVNULL)
    kw.setdefault("stdin", subprocess.DEVNULL)
    p = subprocess.Popen(argv, **kw)
    at_end(stop_process, p)
    return p


def wait_port(port, seconds=10):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    print("nothing listens on %d" % port)
    sys.exit(1)


def wait_until(what, true, seconds=30):
    """States are waited for, not times: a busy machine takes as long as it takes."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            print("not within %d s: %s" % (seconds, what))
            sys.exit(1)
        time.sleep(0.002)


def wait_arrived(port, client):
    """Until what the client at that port has sent lies unread at the server."""
    ends = "0100007F:%04X 0100007F:%04X" % (port, client)

    def unread():
        with open("/proc/net/tcp") as f:
            line = next((x for x in f if ends in x), "")
        m = re.search(r" [0-9A-F]{8}:([0-9A-F]{8}) ", line)
        return m and int(m.group(1), 16) > 0
    wait_until("data at the server", unread)


def wait_stopped(pid):
    def stopped():
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rsplit(") ", 1)[1].startswith("T")
    wait_until("a stopped process", stopped)


def serve(fn, *args):
    """Runs fn(*args) in a child process until the test ends; returns its pid."""
    pid = os.fork()
    if pid == 0:
        _cleanup.clear()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        try:
            fn(*args)
        finally:
            os._exit(0)
    at_end(_end_child, pid)
    return pid


def _end_child(pid):
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        pass
    try:
        os.waitpid(pid, 0)
    except ChildProcessError:
        pass


class Rec(dict):
    __getattr__ = dict.__getitem__

    @property
    def start(self):
        return self["arrival"] or self["first_recv"] or self["first_send"]

    @property
    def latency(self):
        return self["last_send"] - self.start


def parse(line):
    word, *rest = line.split(" ", 1)
    rec = Rec(kind=word)
    for key, value in re.findall(r"(\w+)=(.*?)(?= \w+=|$)", rest[0] if rest else ""):
        rec[key] = int(value) if re.fullmatch(r"-?\d+", value) else value
    return rec


def _urgent():
    """The probe must get to the rings in time also beside whatever else this machine runs."""
    os.setpriority(os.PRIO_PROCESS, 0, -15)


class Probe:
    """Traces while in its with block; afterwards .recs, .reqs (last telling of each id), .ops."""

    def __init__(self, pids=(), ports=(), interval_ms=200, tier=1):
        argv = [PROBE, "--interval", str(interval_ms), "--req-tier", str(tier)]
        for p in pids:
            argv += ["--pid", str(p)]
        for p in ports:
            argv += ["--port", str(p)]
        self.out = tempfile.TemporaryFile("w+")
        self.p = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=self.out,
                                  stderr=subprocess.PIPE, text=True,
                                  preexec_fn=_urgent)
        at_end(stop_process, self.p)
        end = time.monotonic() + 30
        while b"READY" not in os.pread(self.out.fileno(), 64, 0):
            if self.p.poll() is not None:
                err = self.p.stderr.read().strip()
                if self.p.returncode == 3:
                    skip(err)
                print("probe failed: " + err)
                sys.exit(1)
            if time.monotonic() > end:
                print("probe does not start")
                sys.exit(1)
            time.sleep(0.02)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind:
            return
        time.sleep(0.4)  # two refreshes: what is over is told
        self.p.send_signal(signal.SIGINT)
        self.p.wait(20)
        self.out.seek(0)
        self.recs = [parse(line) for line in self.out.read().splitlines()]
        self.told = [r for r in self.recs if r.kind == "REQ"]
        rows = {}
        for r in self.told:
            rows[(r.cookie, r.ordinal)] = r
        self.reqs = list(rows.values())
        self.open = [r for r in self.recs if r.kind == "OPEN_REQ"]
        self.ops = [r for r in self.recs if r.kind == "SOCKOP"]
        self.listens = [r for r in self.recs if r.kind == "LISTEN"]
        check("probe ended well", bool(self.recs) and self.recs[-1].kind == "END" and
              self.p.returncode == 0)
        lost = [r for r in self.recs if r.kind == "LOSS"]
        check("no loss", not lost, str(lost[:3]))
        check("sane times", all(sane(r) for r in self.reqs + self.open),
              str([r for r in self.reqs + self.open if not sane(r)][:1]))
        check("no overlaps", not overlaps(self.reqs), str(overlaps(self.reqs)[:2]))
        again = [r for r in self.told if r.what & RETOLD == 0]
        ids = [(r.cookie, r.ordinal) for r in again]
        check("told once", len(ids) == len(set(ids)))


def sane(r):
    if r.first_recv and not r.arrival <= r.first_recv <= r.last_recv:
        return False
    if r.last_send and not r.first_send <= r.last_send:
        return False
    if r.last_send and r.first_recv and r.first_send < r.first_recv:
        return False
    return r.start > 0


def overlaps(reqs):
    bad, last = [], {}
    for r in sorted(reqs, key=lambda r: (r.cookie, r.ordinal)):
        p = last.get(r.cookie)
        if p and r.first_recv and p.last_send > r.first_recv:
            bad.append((p, r))
        last[r.cookie] = r
    return bad


def percentile(values, q):
    v = sorted(values)
    return v[min(len(v) - 1, int(len(v) * q))] if v else 0


def recv_exact(s, n):
    data = b""
    while len(data) < n:
        part = s.recv(n - len(data))
        if not part:
            raise EOFError
        data += part
    return data


def http_get(s, path="/", extra="", host="x"):
    """One GET on a kept connection; returns the body."""
    s.sendall(("GET %s HTTP/1.1\r\nHost: %s\r\n%s\r\n" % (path, host, extra)).encode())
    return http_reply(s)


def http_reply(s):
    """The body of a reply with a Content-Length."""
    head = b""
    while b"\r\n\r\n" not in head:
        part = s.recv(65536)
        if not part:
            raise EOFError
        head += part
    head, body = head.split(b"\r\n\r\n", 1)
    m = re.search(rb"content-length: *(\d+)", head, re.I)
    return body + recv_exact(s, int(m.group(1)) - len(body)) if m else body


def nginx(conf_http, workers=2, **kw):
    """An nginx of our own; returns (master process, directory)."""
    d = tmpdir()
    conf = os.path.join(d, "nginx.conf")
    with open(conf, "w") as f:
        f.write("""daemon off; master_process on; worker_processes %d; pid %s/pid;
error_log %s/error.log; events { worker_connections 512; }
http { client_body_temp_path %s/b; proxy_temp_path %s/p; fastcgi_temp_path %s/f;
uwsgi_temp_path %s/u; scgi_temp_path %s/s; keepalive_requests 1000000;
log_format t '$remote_port $connection_requests $status $request_time $body_bytes_sent '
             '$upstream_response_time'; access_log %s/access.log t;
%s }
""" % ((workers,) + (d,) * 8 + (conf_http.replace("@D", d),)))
    path = os.environ["PATH"] + ":/usr/sbin"
    p = start([shutil.which("nginx", path=path), "-p", d, "-c", conf], **kw)
    return p, d


def access_log(d):
    """{(client port, ordinal): (status, seconds, upstream seconds or None)}"""
    rows = {}
    with open(os.path.join(d, "access.log")) as f:
        for line in f:
            port, n, status, secs, _, up = line.split()
            rows[(int(port), int(n))] = (int(status), float(secs),
                                         None if up == "-" else float(up))
    return rows
