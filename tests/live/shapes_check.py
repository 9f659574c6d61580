#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""shapes_check.py SHAPE ANALYSIS.json LOG: what is said of requests that pass from thread to thread,
against the server's own log, piece by piece of the deepest partition: where it says that a thread
worked for the request that thread did, and where it says that the request lay queued behind another
one the thread that took it worked for that one. Exits 1 when less than its share is right."""
import bisect
import json
import sys
from collections import defaultdict

LEAST_NS = 300_000  # shorter pieces are the ways between threads
NOT_TOLD = {"unknown", "async", "ambiguous", "cycle", "blocked"}
UNEXPLAINED = {"cond", "sema"}  # where nobody is said to have worked meanwhile
NEUTRAL = {"cpu", "runq", "stolen", "throttle", "lock_handoff", "transit", "sockq", "acceptq", "fork"}
WAITS = {"sleep"}  # the work of all shapes is a sleep
SHARE = 0.95
SHAPES = ("pool", "eventfd", "futex", "accepters", "reuseport", "lifo", "some-slow", "herd", "polling", "batch", "executor", "stages", "offload",
          "helper", "helper-some-slow", "helper-batch", "monitor")


def read_log(path):
    """{(client port, ordinal): [(tid, put, taken, done)]}"""
    rows = defaultdict(list)
    for line in open(path):
        port, ordinal, tid, put, taken, done = map(int, line.split())
        rows[port, ordinal].append((tid, put, taken, done))
    return rows


def key_of(req):
    return int(req["peer"].rsplit(":", 1)[1]), int(req["id"].rsplit("#", 1)[1])


def leaves(req):
    """The deepest partition."""
    path = req["path"]
    for p, after in zip(path, path[1:] + [{"depth": 0}]):
        if after["depth"] <= p["depth"]:
            yield p


class Truth:
    def __init__(self, log, analysis):
        self.log = log
        self.by_port = defaultdict(list)
        for port, ordinal in sorted(log):
            self.by_port[port].append(ordinal)
        self.key_by_id = {r["id"]: self.key_of(r) for r in analysis["requests"]}
        self.work = defaultdict(list)
        for key, rows in log.items():
            for tid, _, taken, done in rows:
                self.work[tid].append((taken, done, key))
        self.taken = {tid: sorted({w[0] for w in v}) for tid, v in self.work.items()}

    def key_of(self, req):
        """By time: on a connection older than the trace ordinals begin anew."""
        port, ordinal = key_of(req)
        if "ordinal_ge" not in req["flags"]:
            return port, ordinal
        return next(((port, o) for o in self.by_port[port]
                     if req["start_ns"] <= self.log[port, o][-1][3] <= req["end_ns"]), (port, -ordinal))

    def worked(self, tid, key, lo, hi, answered=False):
        """ns of [lo, hi) in which that thread worked on that request. answered: and told so, which may take
        it as long as until it took the next."""
        return sum(max(0, min(hi, self.took_next(tid, b) if answered else b) - max(lo, a))
                   for a, b, k in self.work[tid] if k == key)

    def took_next(self, tid, at):
        i = bisect.bisect_left(self.taken[tid], at)
        return self.taken[tid][i] if i < len(self.taken[tid]) else at

    def right(self, key, p):
        """Of this piece of that request, or None: it says nothing that the log knows of."""
        lo, hi = p["start_ns"], p["end_ns"]
        if p["class"] in ("queued", "hol"):
            by = self.key_by_id.get(p["by_request"])
            if by is None:
                return False
            # the thread that took it next, and was not at work on it meanwhile
            for tid, put, taken, _ in self.log[key]:
                if put < hi and taken > lo:
                    return (self.worked(tid, by, lo, hi, True) > 0.5 * (hi - lo) and
                            self.worked(tid, key, lo, hi) < 0.2 * (hi - lo))
            return False
        return (p["class"] in WAITS and
                self.worked(p["task"]["tid"], key, lo, hi) > 0.8 * (hi - lo))


def judged(analysis, log):
    """(request, piece, right) of every piece that says something; right None: it says that it does
    not know."""
    truth = Truth(log, analysis)
    for req in analysis["requests"]:
        key = truth.key_by_id[req["id"]]
        if key not in log:
            continue
        for p in leaves(req):
            if p["end_ns"] - p["start_ns"] < LEAST_NS or p["class"] in NEUTRAL:
                continue
            if p["end_ns"] < log[key][0][1]:  # put: before it the log knows nothing
                continue
            yield req, p, None if p["class"] in NOT_TOLD | UNEXPLAINED else truth.right(key, p)


def main():
    analysis, log = json.load(open(sys.argv[1])), read_log(sys.argv[2])
    told = {key_of(r) for r in analysis["requests"]}
    missing, extra = len(set(log) - told), len(told - set(log))
    inexact = sum(r["path_sum_ns"] != r["latency_ns"] for r in analysis["requests"])
    ns = {True: 0, False: 0, None: 0}
    sure = {True: 0, False: 0}
    wrong = {}
    for req, p, right in judged(analysis, log):
        length = p["end_ns"] - p["start_ns"]
        ns[right] += length
        if right is not None and p["confidence"] >= 90:
            sure[right] += length
        if right is False:
            what = p["class"], tuple(p["reasons"])
            wrong[what] = wrong.get(what, 0) + length
    total, lost = max(1, sum(ns.values())), analysis["counters"]["ring_drops"]
    print("%d requests, %d not found, %d too many, %d inexact, %d dropped; right %.1f %%, wrong %.1f %%, "
          "not told %.1f %%; at H %.2f %% wrong, %.2f %% of all" % (
              len(log), missing, extra, inexact, lost, *(100 * ns[k] / total for k in (True, False, None)),
              100 * sure[False] / max(1, sum(sure.values())), 100 * sure[False] / total))
    for (cls, reasons), length in sorted(wrong.items(), key=lambda kv: -kv[1])[:3]:
        print("  wrong %.0f ms: %s, %s" % (length / 1e6, cls, "; ".join(reasons)))
    ok = (len(log) >= 50 and ns[True] >= SHARE * total and
          not missing and not extra and not inexact and not lost)
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
