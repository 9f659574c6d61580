# SPDX-License-Identifier: Apache-2.0
"""Requests of /cause/NAME against what the server says that each waited for: the dominant wait and its
root, the place in the handler, and that pieces add up. Usage: go_causes.py JSON GT CAUSE"""
import collections
import json
import sys

# first wait's class, root's class, function of the first wait
CAUSES = {
    "mutex": ({"mutex", "sema"}, {"sleep"}, "main.causeMutex"),
    "pool": ({"chan"}, {"sleep"}, "main.useConn"),
    "upstream": ({"upstream"}, {"upstream"}, "main.causeUpstream"),
    "gc": ({"gc"}, {"gc"}, "main.causeGC"),
    "file": ({"disk_read"}, {"disk_read"}, "main.causeFile"),
}
MARKS = {"mutex": ("mutex-lock", "held"), "pool": ("conn-pool-acquire", "0"), "upstream": ("netpoll-recv", ""),
         "gc": ("gc-pressure", ""), "file": ("file-read", "direct")}
LEAST, SHARE = 15, 0.95
# who asks for a collection sweeps after it, on the CPU: in some requests that takes longer than the wait
SHARE_OF = {"gc": 0.8}


def facts(path):
    for line in open(path):
        f = json.loads(line.split("CRITICAST_GT ", 1)[1])
        f["ns"] = int(f["mono_ns"])
        yield f


def visits(path, cause):
    """(goid, entry ns, exit ns, ns in the pool's queue) of each request that met the cause."""
    now = {}
    for f in facts(path):
        g = f["goid"]
        if f["site"] == "handler-entry":
            now[g] = {"goid": g, "entry": f["ns"], "met": False, "queued": 0}
        elif g in now:
            v = now[g]
            v["met"] |= (f["site"], f["extra"]) == MARKS[cause]
            if f["site"] == "conn-pool-wait":
                v["since"] = f["ns"]
            elif f["site"] == "conn-pool-acquire":
                v["queued"] = f["ns"] - v.get("since", f["ns"])
            elif f["site"] in ("spawn", "broadcast-wake"):
                v["other"] = True
            elif f["site"] == "handler-exit":
                if v["met"] and "other" not in v:
                    yield v["goid"], v["entry"], f["ns"], v["queued"]
                del now[g]


def main():
    data, cause = json.load(open(sys.argv[1])), sys.argv[3]
    first, root, place = CAUSES[cause]
    by_goid = collections.defaultdict(list)
    for r in data["requests"]:
        if r["state"] == "done" and r["task"]:
            by_goid[r["task"]["goid"]].append(r)
    right, judged, wrong = 0, 0, collections.Counter()
    for goid, entry, end, queued in visits(sys.argv[2], cause):
        if cause == "pool" and queued < 0.6 * (end - entry):
            continue  # it had the connection itself most of the time
        # from the first byte to the last the handler's time lies within the request's
        r = next((r for r in by_goid[goid]
                  if r["start_ns"] <= entry + 50000 and r["end_ns"] >= end - 50000), None)
        if not r or not r["path_ok"]:
            continue
        assert r["path_sum_ns"] == r["latency_ns"] == r["end_ns"] - r["start_ns"], r["id"]
        d = r["dominant"]
        if d["class"] in ("runq", "throttle", "stolen"):
            continue  # the machine was busy with others: as true as the cause
        judged += 1
        if d["class"] in first and d["root"]["class"] in root and d["site"].startswith(place):
            right += 1
        else:
            wrong[d["class"], d["root"]["class"], d["site"], r["confidence"]] += 1
    print("%s: %d of %d right; not: %s" % (cause, right, judged, dict(wrong.most_common(4))))
    return 0 if judged >= LEAST and right >= SHARE_OF.get(cause, SHARE) * judged else 1


sys.exit(main())
