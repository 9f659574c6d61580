#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""locks_check.py ANALYSIS.json LOG: who criticast says had the lock, and who it says ended a wait for it,
against the log of `locks`, by how sure it says it is. Every ns that a thread waited for the lock is, for the
holder: right (that thread had it, alone or with others), wrong (others had it), free (nobody had) or unnamed;
for the waker: right (it let go, or got it, within the wait) or wrong. What explains a wait, thread by thread, must at
its deepest lead to one who had the lock then, or to a wait, a run queue or a hand-over that is no claim."""
import bisect
import collections
import json
import sys

MARGIN = 2_000_000  # ns between a log's clock and the call it stands for, on a busy machine
CLAIMS = 60       # from here on an answer is one


def letter(conf):
    return "H" if conf >= 90 else "M" if conf >= CLAIMS else "L"


def read_log(path):
    return [tuple(map(int, line.split())) for line in open(path)]


class Truth:
    def __init__(self, takes):
        self.waits = collections.defaultdict(list)
        self.holds = sorted((got, gone, tid) for tid, _, got, gone, _ in takes)
        self.starts = [h[0] for h in self.holds]
        self.longest = max((b - a for a, b, _ in self.holds), default=0)
        for tid, asked, got, _, _ in takes:
            self.waits[tid].append((asked, got))
        for v in self.waits.values():
            v.sort()

    def whole(self, lo, hi):
        i = bisect.bisect_left(self.starts, lo - self.longest)
        for a, b, tid in self.holds[i:bisect.bisect_right(self.starts, hi)]:
            if b > lo and a < hi:
                yield tid, a, b

    def within(self, lo, hi):
        for tid, a, b in self.whole(lo, hi):
            yield tid, max(a, lo), min(b, hi)

    def wait_of(self, tid, at):
        v = self.waits[tid]
        i = bisect.bisect_right(v, (at, 1 << 63)) - 1
        return v[i] if i >= 0 and v[i][0] <= at < v[i][1] else None

    def judge(self, named, lo, hi):
        """ns of [lo, hi) in which the one named had it, others had it, nobody had."""
        cuts = sorted({lo, hi, *(x for _, a, b in self.within(lo, hi) for x in (a, b))})
        out = dict(right=0, wrong=0, free=0)
        for a, b in zip(cuts, cuts[1:]):
            who = {t for t, x, y in self.within(a, b) if x <= a and b <= y}
            out["free" if not who else "right" if named in who else "wrong"] += b - a
        return out


def looked_in_vain(truth, n, waits):
    """Who is woken for a file's lock and does not get it waits on, and may wake those behind it: that it ran
    meanwhile is what it did until it woke them, and no claim that it had the lock."""
    return (waits["class"] == "flock" and waits["waker"] and waits["waker"].get("tid") == n["task"]["tid"] and
            truth.wait_of(n["task"]["tid"], n["start_ns"]) is not None)


def judged(analysis, takes):
    """(piece, what is judged, its ns by verdict) of each own wait for the lock."""
    truth = Truth(takes)
    for req in analysis["requests"]:
        handed, piece = 0, None
        rows = req["path"] + [dict(depth=0)]
        for i, p in enumerate(rows):
            if p["depth"] or "class" not in p or p["class"] in ("cpu", "runq") or p["task"]["tid"] not in truth.waits:
                continue
            wait = truth.wait_of(p["task"]["tid"], (p["start_ns"] + p["end_ns"]) // 2)
            if not wait or p["end_ns"] - p["start_ns"] < 50_000 or p["open"]:
                continue
            lo, hi = p["start_ns"], p["end_ns"]
            nested = []
            for n in rows[i + 1:]:
                if n["depth"] == 0:
                    break
                nested.append(n)
            for n in nested:  # until the one named ran, nobody is said to have had it
                if n["depth"] == 1 and n["class"] == "lock_handoff":
                    lo = max(lo, n["end_ns"]) if n["start_ns"] == lo else lo
            if p["holder"]:
                yield p, "holder", truth.judge(p["holder"]["tid"], lo, hi)
            elif p["class"] in ("lock", "klock", "flock"):
                yield p, "holder", dict(unnamed=hi - lo)
            if p["waker"] and p["waker"]["kind"] == "task":
                # of a file's lock also who gets it wakes those that wait behind it
                a, b = wait[0] - MARGIN, wait[1] + MARGIN
                gave = any(t == p["waker"]["tid"] and (a <= x <= b or a <= y <= b)
                           for t, x, y in truth.whole(a, b))
                if p["class"] == "flock":  # who looked in vain wakes those behind it too
                    gave = gave or truth.wait_of(p["waker"]["tid"], hi) is not None
                yield p, "waker", {"right" if gave else "wrong": hi - lo}
            yield p, "class", {p["class"]: hi - lo}
            # the deepest: whose running or sleeping is said to be what it waited for
            for k, n in enumerate(nested):
                deeper = k + 1 < len(nested) and nested[k + 1]["depth"] > n["depth"]
                if deeper or n["class"] not in ("cpu", "sleep"):
                    continue
                if looked_in_vain(truth, n, next(x for x in reversed([p] + nested[:k]) if x["depth"] < n["depth"])):
                    continue
                v = truth.judge(n["task"]["tid"], n["start_ns"], n["end_ns"])
                yield n, "beneath", v


def table(analysis, takes):
    out = collections.defaultdict(lambda: collections.Counter())
    reasons = collections.Counter()
    for p, what, ns in judged(analysis, takes):
        for verdict, t in ns.items():
            out[what, letter(p["confidence"]) if what != "class" else ""][verdict] += t
            if verdict == "wrong" and p["confidence"] >= CLAIMS:
                reasons[what, p["class"], tuple(p["reasons"])] += t
    return out, reasons


def main():
    analysis, takes = json.load(open(sys.argv[1])), read_log(sys.argv[2])
    out, reasons = table(analysis, takes)
    print("%d acquisitions" % len(takes))
    for (what, conf), c in sorted(out.items()):
        total = sum(c.values())
        print("  %-8s %1s %8.1f ms  %s" % (what, conf, total / 1e6, "  ".join(
            "%s %.1f%%" % (k, 100 * v / total) for k, v in c.most_common())))
    for (what, cls, why), t in reasons.most_common(4):
        print("    wrong %.1f ms: %s %s %s" % (t / 1e6, what, cls, list(why)))


if __name__ == "__main__":
    main()
