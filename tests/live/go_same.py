#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""go_same A B [MIN]: the same requests as two recordings, of different tiers, tell them. How many have the same path
within 2 % of their time: what each class has on the path's own level, summed up. Since when a goroutine that waits for
its socket might have run, only tier full is told (the network poller made it ready): "nobody read it" in one is the
run queue in the other. Exit code 1 when fewer than MIN % have, or the recordings have hardly any request in common."""
import collections
import json
import os
import subprocess
import sys

APART = 0.02
SAME = {"sockq": "runq"}


def requests(trace):
    p = subprocess.run([os.environ["CRITICAST"], "analyze", trace, "--top", "0", "--format", "json"],
                       stdout=subprocess.PIPE, check=True)
    return {(r["peer"], r["id"].rsplit("#", 1)[1]): r for r in json.loads(p.stdout)["requests"] if r["peer"]}


def classes(r):
    ns = collections.Counter()
    for p in r["path"]:
        if p["depth"] == 0:
            ns[SAME.get(p["class"], p["class"])] += p["end_ns"] - p["start_ns"]
    return ns


def apart(a, b):
    """Share of a request's time that one path has where the other has it not."""
    x, y = classes(a), classes(b)
    return sum(abs(x[c] - y[c]) for c in x.keys() | y.keys()) / 2 / max(1, a["latency_ns"])


def main():
    a, b = requests(sys.argv[1]), requests(sys.argv[2])
    least = float(sys.argv[3]) if len(sys.argv) > 3 else 0
    both = sorted(a.keys() & b.keys())
    far = [(apart(a[k], b[k]), k) for k in both]
    same = sum(d <= APART for d, _ in far)
    off = [k for k in both if abs(sum(classes(a[k]).values()) - a[k]["latency_ns"]) > 0]
    print(f"the same {len(both)} requests in both tiers: {same} have the same path within {100 * APART:.0f} % "
          f"({100 * same / max(1, len(both)):.1f} %), {len(off)} do not sum up")
    for d, k in sorted(far)[-3:]:
        if d > APART:
            print(f"  {100 * d:.1f} % apart: {dict(classes(a[k]))} and {dict(classes(b[k]))}")
    enough = len(both) >= 0.9 * min(len(a), len(b)) > 0
    return 0 if enough and not off and 100 * same >= least * len(both) else 1


sys.exit(main())
