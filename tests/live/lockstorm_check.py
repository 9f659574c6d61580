#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""lockstorm_check.py ANALYSIS.json LOG [MAX_WRONG_%]

Compares who criticast says held the lock, moment by moment, with the storm's own log. Every ns of
every lock piece is one of: right (that thread had it), wrong (another had it), unnamed (one had it,
criticast names nobody), free (by the log nobody had it), handed (the thread named was woken to take
it and waits for a CPU, says criticast: nobody is said to hold it, and whoever barges in meanwhile is
not what the wait is for). Exits 1 when the share of wrong in lock-wait time is above the limit, when
criticast names too few holders, or when it does not see the waits that the log shows."""
import bisect
import json
import sys


def read_log(path):
    takes = [tuple(map(int, line.split())) for line in open(path)]
    takes.sort(key=lambda t: t[2])
    return takes


class Truth:
    """Who held the one lock when; holds do not overlap."""

    def __init__(self, takes):
        self.tid = [t[0] for t in takes]
        self.start = [t[2] for t in takes]
        self.end = [t[3] for t in takes]
        for i in range(1, len(takes)):
            assert self.start[i] >= self.end[i - 1], "the log itself shows two holders at once"

    def holders(self, lo, hi):
        i = max(0, bisect.bisect_right(self.start, lo) - 1)
        while i < len(self.start) and self.start[i] < hi:
            a, b = max(lo, self.start[i]), min(hi, self.end[i])
            if a < b:
                yield self.tid[i], a, b
            i += 1


def lock_pieces(analysis, tids):
    """(piece, [(start, end) of what is within, without the hand-over])"""
    for req in analysis["requests"]:
        piece, parts = None, []
        for p in req["path"] + [dict(depth=0)]:
            if p["depth"] == 0:
                if piece:
                    yield piece, parts
                lock = p.get("class") == "lock" and p["task"]["tid"] in tids
                piece, parts = p if lock else None, []
            elif p["depth"] == 1 and p["class"] != "lock_handoff":
                parts.append((p["start_ns"], p["end_ns"]))


def judged(analysis, takes):
    """(lock piece, its ns by kind)"""
    truth = Truth(takes)
    for p, parts in lock_pieces(analysis, {t[0] for t in takes}):
        ns = dict(right=0, wrong=0, unnamed=0, free=0, handed=0)
        parts = parts or [(p["start_ns"], p["end_ns"])]
        named = (p.get("holder") or {}).get("tid", 0)
        ns["handed"] += p["end_ns"] - p["start_ns"] - sum(b - a for a, b in parts)
        for lo, hi in parts:
            held = 0
            for tid, a, b in truth.holders(lo, hi):
                held += b - a
                ns["unnamed" if not named else "right" if tid == named else "wrong"] += b - a
            ns["free"] += hi - lo - held
        yield p, ns


def compare(analysis, takes):
    total = dict(right=0, wrong=0, unnamed=0, free=0, handed=0)
    for _, ns in judged(analysis, takes):
        for kind in total:
            total[kind] += ns[kind]
    return total


def waited(takes, lo, hi):
    """ns of waiting in the log within [lo, hi), waits long enough to have blocked."""
    return sum(max(0, min(t[2], hi) - max(t[1], lo)) for t in takes if t[2] - t[1] > 50_000)


def main():
    analysis = json.load(open(sys.argv[1]))
    takes = read_log(sys.argv[2])
    limit = float(sys.argv[3]) if len(sys.argv) > 3 else None
    ns = compare(analysis, takes)
    total = sum(ns.values())
    lo, hi = analysis["trace"]["start_ns"], analysis["trace"]["end_ns"]
    want = waited(takes, lo, hi)
    if not takes or not total or not want:
        print(f"nothing to compare: {len(takes)} acquisitions, {want} ns waited, {total} ns seen")
        return 1
    share = {k: 100.0 * v / total for k, v in ns.items()}
    seen = 100.0 * total / want
    lost = analysis["counters"]["ring_drops"]
    print(f"{len(takes)} acquisitions, {total / 1e9:.2f} s of lock waits, {seen:.1f} % of the log's; "
          + ", ".join(f"{k} {v:.2f} %" for k, v in share.items()) + f"; {lost} dropped")
    if limit is None:
        return 0
    said = sum(ns[k] for k in ("right", "wrong", "unnamed"))
    named = 100.0 * (ns["right"] + ns["wrong"]) / max(1, said)
    bad = []
    if share["wrong"] > limit:
        bad.append(f"wrong holder for {share['wrong']:.2f} % of lock-wait time, limit {limit} %")
    if named < 95:
        bad.append(f"a holder is named for only {named:.1f} % of the time in which one held it")
    if share["right"] < 50:
        bad.append(f"the right holder is named for only {share['right']:.1f} % of the waiting")
    if seen < 85:
        bad.append(f"only {seen:.1f} % of the waiting in the log was seen as lock waits")
    if lost:
        bad.append(f"{lost} records were dropped: {analysis['counters']['dropped']}")
    for line in bad:
        print("FAILED:", line)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
