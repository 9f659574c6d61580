# SPDX-License-Identifier: Apache-2.0
"""What tracing costs the traced program: its own CPU time, a tracer beside it, kernel programs' own account."""
import glob
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import time

BUILD, CRITICAST = os.environ["BUILD"], os.environ["CRITICAST"]
STATS = "/proc/sys/kernel/bpf_stats_enabled"
BPFTOOL = shutil.which("bpftool") or "/usr/sbin/bpftool"


RECORDING = "bench.criticast"  # of a tool that makes one when it traces


class CannotRun(Exception):
    pass


def tasks_cpu_ns(pids):
    total = 0
    for pid in pids:
        for tid in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{tid}/schedstat") as f:
                total += int(f.read().split()[0])
    return total


def links(pid):
    """How many kernel programs process @pid has attached."""
    cnt = 0
    for path in glob.glob(f"/proc/{pid}/fdinfo/*"):
        try:
            with open(path) as f:
                cnt += "link_type:" in f.read()
        except OSError:
            continue
    return cnt


ATTACHED = "attached"  # of a tool that makes no recording: ready when it attaches no more


class Tracer:
    """A tool attached to a pid, after so many seconds, when ATTACHED, or, None, when its recording is there; stop() ends
    it and tells the CPU seconds it used since it was ready until then, and for how long that was."""

    def __init__(self, command, settle, tmp):
        self.log = open(f"{tmp}/tool.log", "wb+")
        self.proc = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log,
                                     stderr=self.log)
        end, seen = time.monotonic() + 30, 0
        while settle in (None, ATTACHED) and not self.is_ready(settle, tmp, seen) and self.proc.poll() is None:
            if time.monotonic() > end:
                self.fail("does not attach")
            seen = links(self.proc.pid) if settle else 0
            time.sleep(0.3 if settle else 0.02)
        time.sleep(settle if isinstance(settle, float) else 0.3)
        if self.proc.poll() is not None:
            self.fail("ended at once")
        self.loading, self.start = tasks_cpu_ns([self.proc.pid]) / 1e9, time.monotonic()

    def is_ready(self, settle, tmp, seen):
        return 0 < links(self.proc.pid) == seen if settle else os.path.exists(f"{tmp}/{RECORDING}")

    def fail(self, what):
        self.log.seek(0)
        tail = self.log.read().decode(errors="replace").strip().splitlines()[-1:] or [""]
        raise CannotRun(f"{what}: {tail[0]}")

    def stop(self):
        used = tasks_cpu_ns([self.proc.pid]) / 1e9 - self.loading
        wall = time.monotonic() - self.start
        self.proc.send_signal(signal.SIGINT)
        try:
            self.proc.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.proc.kill()
            self.proc.wait()
            self.fail("did not end within 30 s")
        return used, wall


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_port(port):
    for _ in range(100):
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise CannotRun(f"nobody listens on port {port}")


def quartiles(values):
    if len(values) < 2:
        return values[0], values[0]
    q = statistics.quantiles(values, n=4)
    return q[0], q[2]


def budget(what, value, unit, limit, at_least=False):
    met = value >= limit if at_least else value <= limit
    print(f"  {'met    ' if met else 'NOT MET'} {what}: {value:.4g} {unit}, budget {'>=' if at_least else '<='} {limit}")


# ---- kernel programs ----

class CountRuns:
    """While it is entered the kernel counts runs and ns of all programs, which itself costs a little."""

    def __enter__(self):
        with open(STATS) as f:
            self.before = f.read()
        with open(STATS, "w") as f:
            f.write("1")

    def __exit__(self, *_):
        with open(STATS, "w") as f:
            f.write(self.before)


def programs(pid):
    """Runs and ns of each kernel program that process @pid has open, by id."""
    sums = {}
    for path in glob.glob(f"/proc/{pid}/fdinfo/*"):
        try:
            with open(path) as f:
                info = dict(line.split(":", 1) for line in f if ":" in line)
        except OSError:
            continue
        if "prog_id" in info and "run_cnt" in info:
            sums[int(info["prog_id"])] = (int(info["run_cnt"]), int(info["run_time_ns"]))
    return sums


def program_names():
    p = subprocess.run([BPFTOOL, "-j", "prog", "show"], capture_output=True)
    return {prog["id"]: prog.get("name", "") for prog in json.loads(p.stdout or "[]")}


class Counted(Tracer):
    """One whose programs' runs are counted. After stop(): runs and ns of each, by name; on the whole host."""

    def __init__(self, *args):
        super().__init__(*args)
        self.count = CountRuns()
        self.count.__enter__()
        self.first = programs(self.proc.pid)

    def stop(self):
        last, names = programs(self.proc.pid), program_names()
        self.count.__exit__()
        self.runs = {}
        for prog, (runs, ns) in last.items():
            before = self.first.get(prog, (0, 0))
            if runs > before[0]:
                self.runs[names.get(prog, "?")] = runs - before[0], ns - before[1]
        return super().stop()
