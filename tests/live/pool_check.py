#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pool_check.py ANALYSIS.json LOG: requests of a worker pool that is too small must be found, say
"queued", for as long as the log says, and name the request that kept their worker."""
import json
import sys
from collections import defaultdict

SHARE = 0.95


def read_log(path):
    rows = {}
    for line in open(path):
        port, ordinal, tid, received, taken, answered = map(int, line.split())
        rows[port, ordinal] = dict(tid=tid, received=received, taken=taken, answered=answered)
    return rows


def key_of(req):
    return int(req["peer"].rsplit(":", 1)[1]), int(req["id"].rsplit("#", 1)[1])


def culprit_ns(req, key, log, served_by, key_by_id):
    """ns of its queued pieces that name (right) or do not name (wrong) the request whose end let
    this one go on: of those that its worker served during the piece, the last."""
    right = wrong = 0
    for p in req["path"]:
        if p["depth"] or p["class"] != "queued":
            continue
        last = None
        for other, lo, hi in served_by[log[key]["tid"]]:
            if other != key and lo < p["end_ns"] and hi > p["start_ns"]:
                last = other
        length = p["end_ns"] - p["start_ns"]
        if last == key_by_id.get(p.get("by_request")):
            right += length
        else:
            wrong += length
    return right, wrong


def main():
    analysis, log = json.load(open(sys.argv[1])), read_log(sys.argv[2])
    by_key = {key_of(r): r for r in analysis["requests"]}
    key_by_id = {r["id"]: k for k, r in by_key.items()}
    served_by = defaultdict(list)
    for key, row in sorted(log.items(), key=lambda kv: kv[1]["taken"]):
        served_by[row["tid"]].append((key, row["taken"], row["answered"]))
    n = missing = cls = who = inexact = 0
    extra = len(set(by_key) - set(log))
    first_wrong = None
    for key, row in log.items():
        wait, latency = row["taken"] - row["received"], row["answered"] - row["received"]
        req = by_key.get(key)
        if not req:
            missing += 1
            continue
        inexact += req["path_sum_ns"] != req["latency_ns"]
        if wait < 0.6 * latency:
            continue  # hardly queued, says the log
        n += 1
        queued = sum(p["end_ns"] - p["start_ns"] for p in req["path"]
                     if p["depth"] == 0 and p["class"] == "queued")
        cls_ok = req["dominant"]["class"] == "queued" and abs(queued - wait) < 1e6 + wait / 10
        right, wrong = culprit_ns(req, key, log, served_by, key_by_id)
        who_ok = right > 0 and right >= SHARE * (right + wrong)
        cls += cls_ok
        who += who_ok
        if not (cls_ok and who_ok) and first_wrong is None:
            first_wrong = req["id"]
    lost = analysis["counters"]["ring_drops"]
    print(f"{len(log)} requests, {missing} not found, {extra} too many, {n} queued, class right {cls}, "
          f"culprit right {who}, {inexact} inexact, {lost} dropped" +
          (f"; wrong: {first_wrong}" if first_wrong else ""))
    ok = (n >= 50 and cls >= SHARE * n and who >= SHARE * n and
          not missing and not extra and not inexact and not lost)
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
