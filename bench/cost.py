# SPDX-License-Identifier: Apache-2.0
"""What tracing costs the traced program: its own CPU time, a tracer beside it, kernel programs' own account."""
import glob
import json
import os
import resource
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


class Tracer:
    """A tool attached to a pid, after so many seconds or, None, when its recording is there; stop() ends
    it and tells the CPU seconds it used since it was ready, and for how long that was."""

    def __init__(self, command, settle, tmp):
        self.log = open(f"{tmp}/tool.log", "wb+")
        self.proc = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log,
                                     stderr=self.log)
        end = time.monotonic() + 30
        while settle is None and not os.path.exists(f"{tmp}/{RECORDING}") and self.proc.poll() is None:
            if time.monotonic() > end:
                self.fail("does not attach")
            time.sleep(0.02)
        time.sleep(settle or 0.3)
        if self.proc.poll() is not None:
            self.fail("ended at once")
        self.loading, self.start = tasks_cpu_ns([self.proc.pid]) / 1e9, time.monotonic()

    def fail(self, what):
        self.log.seek(0)
        tail = self.log.read().decode(errors="replace").strip().splitlines()[-1:] or [""]
        raise CannotRun(f"{what}: {tail[0]}")

    def stop(self):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.proc.send_signal(signal.SIGINT)
        try:
            self.proc.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.proc.kill()
            self.proc.wait()
            self.fail("did not end within 30 s")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return max(0, used - self.loading), time.monotonic() - self.start


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
