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


def verdicts(analysis, log):
    """(request, class right, culprit right) of every request that was queued, says the log."""
    by_key = {key_of(r): r for r in analysis["requests"]}
    key_by_id = {r["id"]: k for k, r in by_key.items()}
    served_by = defaultdict(list)
    for key, row in sorted(log.items(), key=lambda kv: kv[1]["taken"]):
        served_by[row["tid"]].append((key, row["taken"], row["answered"]))
    for key, row in log.items():
        wait, latency = row["taken"] - row["received"], row["answered"] - row["received"]
        req = by_key.get(key)
        if not req or wait < 0.6 * latency:
            continue
        queued = sum(p["end_ns"] - p["start_ns"] for p in req["path"]
                     if p["depth"] == 0 and p["class"] == "queued")
        right, wrong = culprit_ns(req, key, log, served_by, key_by_id)
        yield (req, req["dominant"]["class"] == "queued" and abs(queued - wait) < 1e6 + wait / 10,
               right > 0 and right >= SHARE * (right + wrong))


def main():
    analysis, log = json.load(open(sys.argv[1])), read_log(sys.argv[2])
    keys = {key_of(r) for r in analysis["requests"]}
    missing, extra = len(set(log) - keys), len(keys - set(log))
    inexact = sum(r["path_sum_ns"] != r["latency_ns"] for r in analysis["requests"])
    judged = list(verdicts(analysis, log))
    n, cls, who = len(judged), sum(v[1] for v in judged), sum(v[2] for v in judged)
    first_wrong = next((r["id"] for r, cls_ok, who_ok in judged if not (cls_ok and who_ok)), None)
    lost = analysis["counters"]["ring_drops"]
    print(f"{len(log)} requests, {missing} not found, {extra} too many, {n} queued, class right {cls}, "
          f"culprit right {who}, {inexact} inexact, {lost} dropped" +
          (f"; wrong: {first_wrong}" if first_wrong else ""))
    ok = (n >= 50 and cls >= SHARE * n and who >= SHARE * n and
          not missing and not extra and not inexact and not lost)
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
