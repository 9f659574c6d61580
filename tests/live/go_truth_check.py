# SPDX-License-Identifier: Apache-2.0
"""Waits of goroutines against the log of testdata/go/truth: what a wait was for, who ended it, who had what
was waited for, whose request it was. Usage: go_truth_check.py JSON LOG [--verbose]"""
import collections
import json
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import answers_lib as a  # noqa: E402
import req_lib as q  # noqa: E402

# classes that are right, of the wait itself
CLASSES = {
    "cond-broadcast": {"cond", "mutex"}, "cond-signal": {"cond", "mutex"},  # and its lock again
    "mutex": {"mutex", "sema"}, "once": {"mutex", "sema"},
    "rw-writer": {"sema", "mutex"}, "rw-reader": {"sema", "mutex"}, "rw-readers": {"sema", "mutex"},
    "wait-group": {"sema"}, "single-flight": {"sema"}, "group": {"sema"},
    "semaphore-1": {"chan"}, "semaphore-2": {"chan"}, "conn-channel": {"chan"}, "sql-pool": {"select", "chan"},
    "worker-pool": {"chan"}, "collector": {"chan"}, "closed": {"chan"}, "cancelled": {"chan"},
    "selected": {"select", "chan"}, "io-pipe": {"select", "chan"}, "system-pipe": {"pipe"},
    "sleep": {"sleep"}, "time-after": {"select", "chan"}, "timer-channel": {"chan"}, "after-func": {"chan"},
}
NO_WAIT = {"cpu", "runq", "stolen", "throttle"}
NOT_TOLD = {"unknown", "async", "ambiguous", "cycle", "blocked"}
SLOP = 60_000       # ns: the log's clock and what it stands for are so far apart
LEAST = 300_000     # ns: waits that are judged
HIGH, MEDIUM = 90, 60

Fact = collections.namedtuple("Fact", "what of goid begin end by")


def read_log(path):
    log = {"wait": [], "request": [], "hold": collections.defaultdict(list)}
    with open(path, encoding="utf-8") as f:
        for line in f:
            kind, what, *rest = line.split()
            w = Fact(what, *map(int, rest))
            log["hold"][what, w.of].append(w) if kind == "hold" else log[kind].append(w)
    return log


def traced(dur):
    """Builds the server, puts load on it over HTTP/1, then HTTP/2, for so long each: (analysis, its log)."""
    src = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../testdata/go/truth")
    server, log = os.path.join(q.tmpdir(), "truth"), os.path.join(q.tmpdir(), "log")
    subprocess.run(["go", "build", "-o", server, "."], cwd=src, check=True)
    p = q.start([server, "-log", log], stdout=subprocess.PIPE, text=True)
    urls = [p.stdout.readline().split()[1] for _ in range(2)]
    rec = os.path.join(q.tmpdir(), "rec.criticast")
    with a.Tracer([p.pid], ("top", "--json", "--top", 200, "--go", "waits", "--ring-bytes", "32M", "--record", rec),
                  rec) as t:
        for url in urls:
            subprocess.run([server, "-load", url, "-dur", dur], check=True)
    p.send_signal(signal.SIGTERM)
    p.wait(30)
    return a.analyze(t.file), read_log(log)


def overlap(a, b, c, d):
    return max(0, min(b, d) - max(a, c))


def requests_of(analysis):
    by_goid = collections.defaultdict(list)
    for r in analysis["requests"]:
        if r["state"] == "done" and r["task"] and r["task"]["goid"]:
            by_goid[r["task"]["goid"]].append(r)
    return by_goid


def request_at(by_goid, w):
    """The rows of that goroutine in which the wait lies."""
    return [r for r in by_goid[w.goid] if r["start_ns"] <= w.begin + SLOP and r["end_ns"] >= w.end - SLOP]


def had(log, w, lo, hi):
    """{goroutine: ns of [lo, hi) in which it had what @w waited for}"""
    ret = collections.Counter()
    for h in log["hold"][w.what, w.of]:
        ret[h.goid] += overlap(lo, hi, h.begin, h.end)
    return ret


def judge(log, w, p):
    """(right, what is wrong or not told) of piece @p of wait @w; right None: nothing is claimed."""
    if p["class"] in NOT_TOLD:
        return None, p["class"]
    if p["class"] not in CLASSES[w.what]:
        return False, "class " + p["class"]
    lo, hi = max(w.begin, p["start_ns"]), min(w.end, p["end_ns"])
    if w.what.startswith("cond-") and p["class"] == "mutex":
        return None, "its lock again"
    holder, waker = p["holder"], p["waker"]
    if holder and log["hold"][w.what, w.of]:
        times, length, who = had(log, w, lo, hi), hi - lo, holder.get("goid", 0)
        if times[who] < 0.8 * length - SLOP:
            return False, "holder"
        if p["confidence"] >= HIGH and any(
                ns > length / 2 for g, ns in times.items() if g not in (who, w.goid)):
            return False, "holder, one of several"
    if w.by < 0 or abs(p["end_ns"] - w.end) > 1_000_000:
        return (True, "") if holder else (None, "nobody to judge")
    if not waker or waker["kind"] == "unknown":
        return None, "no waker"
    if w.by == 0:
        return waker["kind"] in ("timer", "netpoll"), "waker is " + waker["kind"]
    return (True, "") if waker["kind"] == "task" and waker.get("goid") == w.by else (
        False, "waker is %s" % (waker["kind"] if not waker.get("goid") else "another"))


def judged(analysis, log):
    """(wait, request, piece, right, why) of each piece of a wait that has a row."""
    by_goid = requests_of(analysis)
    for w in log["wait"]:
        for r in request_at(by_goid, w)[:1]:
            for p in a.own_pieces(r):
                length = p["end_ns"] - p["start_ns"]
                if p["class"] not in NO_WAIT and length >= LEAST and \
                        overlap(w.begin, w.end, p["start_ns"], p["end_ns"]) > 0.9 * length:
                    yield w, r, p, *judge(log, w, p)


# what is beneath, where it is not what somebody else slept for, and where that is not known to be so
BENEATH = {"cond-broadcast": {"chan"}, "time-after": {"select"}, "timer-channel": {"chan"},
           "semaphore-1": {"queued", "sleep"}, "semaphore-2": {"queued", "sleep"}, "sql-pool": {"queued", "sleep"}}
# three workers for more clients: who waits for a free one is queued
QUEUES = {"worker-pool", "collector", "cond-signal"}


def beneath(analysis, log):
    """(right, judged): of requests that are sure of it and waited for one thing most of the time, how many
    say rightly why that took so long."""
    by_goid, right, judged = requests_of(analysis), 0, 0
    for w in log["wait"]:
        for r in request_at(by_goid, w)[:1]:
            root = r["dominant"]["root"]["class"]
            if w.end - w.begin < 0.7 * r["latency_ns"] or r["confidence"] < MEDIUM or root in NO_WAIT:
                continue
            judged += 1
            right += root in BENEATH.get(w.what, {"sleep"}) or (w.what in QUEUES and root == "queued")
    return right, judged


def rows(analysis, log):
    """(fact, rows of its goroutine that are it): each request is one row, of its handler's goroutine."""
    by_goid = requests_of(analysis)
    for w in log["request"]:
        yield w, request_at(by_goid, w)


def bucket(confidence):
    return "H" if confidence >= HIGH else "M" if confidence >= MEDIUM else "L"


def main():
    with open(sys.argv[1]) as f:
        analysis = json.load(f)
    log = read_log(sys.argv[2])
    table = collections.defaultdict(collections.Counter)
    wrong, quiet = collections.defaultdict(collections.Counter), collections.defaultdict(collections.Counter)
    for w, r, p, right, why in judged(analysis, log):
        t = table[w.what]
        if right is None:
            t["none"] += 1
            quiet[w.what][why] += 1
            continue
        t[bucket(p["confidence"]), bool(right)] += 1
        if not right:
            wrong[w.what][why, bucket(p["confidence"])] += 1
            if "--verbose" in sys.argv:
                print(w, r["id"], why, json.dumps({k: p[k] for k in p if k != "stack"}))
    form = "%-16s %6s %6s   %6s %6s   %6s %6s   %6s"
    print(form % ("", "H", "wrong", "M", "wrong", "L", "wrong", "none"))
    for what, t in sorted(table.items()):
        print((form % (what, *(t[b, ok] for b in "HML" for ok in (True, False)), t["none"])).rstrip(),
              dict(wrong[what]) or "", dict(quiet[what]) or "")
    found = collections.Counter(min(2, len(x)) for _, x in rows(analysis, log))
    print("requests: %d have one row, %d none, %d several" % (found[1], found[0], found[2]))


if __name__ == "__main__":
    main()
