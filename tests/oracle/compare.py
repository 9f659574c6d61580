# SPDX-License-Identifier: Apache-2.0
"""Runs schedules through the engine (walk_driver) and the oracle and compares piece by piece."""

import multiprocessing
import os
import subprocess
import sys

import families
import oracle as orc
import schedule

NONE = "-"
LEAVES = ("queued", "hol")  # what lies beneath these is the other request's own path
EXACT_ONLY = ("chaos",)     # no program behaves so: its requests' paths must be exact, no more
TICKS = int(os.environ.get("CC_TICKS", "1"))  # 0: everything at once
WALKS = int(os.environ.get("WALKS", 200))  # of each schedule, of which what holds for all is asked
WRONG_HOLDER_MAX = 0.01     # of lock-wait time in schedules without loss (DESIGN section 10)


def schedules(usual):
    """How many of each kind: SCHEDULES says fewer where the build is a slow one."""
    return int(os.environ.get("SCHEDULES", usual))


def driver():
    build = os.environ.get("BUILD", "build/release")
    path = os.path.join(build, "tests/oracle/walk_driver")
    if not os.access(path, os.X_OK):
        print(f"FAIL: {path} does not exist; build it with `make test-build`")
        print("0 passed, 1 failed, 0 skipped")
        sys.exit(1)
    return path


def rid_text(rid):
    return NONE if rid is None else f"{rid[0]:x}#{rid[1]}"


def parse(text):
    """Per frame: ({request id: (start, end, state, pieces)}, [(tid, lo, hi, pieces)], E line, B lines)."""
    frames, reqs, walks, pieces, bad = [], {}, [], None, []
    for line in text.splitlines():
        f = line.split()
        if f[0] == "R":
            pieces = []
            reqs[f[1]] = (int(f[2]), int(f[3]), f[4], pieces)
        elif f[0] == "W":
            pieces = []
            walks.append((int(f[1]), int(f[2]), int(f[3]), pieces))
        elif f[0] == "P":
            pieces.append(f)
        elif f[0] == "B":
            bad.append(line[2:])
        elif f[0] == "E":
            frames.append((reqs, walks, line, bad))
            reqs, walks, bad = {}, [], []
    return frames


def tree(lines):
    """P lines in pre-order to nodes. Raises ValueError when a depth has no parent."""
    top, path = [], []
    for f in lines:
        depth, start, end, tid, cls = int(f[1]), int(f[2]), int(f[3]), int(f[4]), f[5]
        kv = dict(x.split("=", 1) for x in f[6:])
        flags = int(kv["f"])
        n = orc.Node(start, end, tid, cls, waker=int(kv["w"]), holder=int(kv["h"]),
                     by=None if kv["by"] == NONE else kv["by"],
                     for_=None if kv["for"] == NONE else kv["for"],
                     open=bool(flags & 1), not_traced=bool(flags & 2))
        if depth > len(path):
            raise ValueError(f"piece {n!r} at depth {depth} has no parent")
        del path[depth:]
        (path[-1].kids if path else top).append(n)
        path.append(n)
    return top


def normal(nodes, parent=None):
    """What is not part of the comparison is taken out, on both sides alike."""
    for n in nodes:
        if isinstance(n.by, tuple):
            n.by = rid_text(n.by)
        if isinstance(n.for_, tuple):
            n.for_ = rid_text(n.for_)
        if n.cls in LEAVES:
            n.kids, n.waker, n.holder, n.for_ = [], 0, 0, None
        if n.cls != "lock" or n.open:
            n.holder = 0
        if n.open:
            n.waker = 0  # it has not come yet
        if n.cls in ("cpu", "runq", "unknown"):
            n.open = False
        if n.cls == "unknown":
            n.for_ = None
        normal(n.kids, n)
    return nodes


def differ(want, got, lo, hi):
    """None, or what is wrong."""
    bad = orc.check_exact(got, lo, hi)
    if bad:
        return "engine not exact: " + bad
    bad = orc.check_exact(want, lo, hi)
    if bad:
        return "oracle not exact: " + bad
    want, got = orc.canonical(normal(want)), orc.canonical(normal(got))
    a, b = orc.show(want), orc.show(got)
    return None if a == b else f"--- oracle\n{a}\n--- engine\n{b}"


def compare_world(w, records, frame):
    """[(what, complaint)] for one schedule; and how many paths and walks were compared."""
    reqs, walks, _, broken = frame
    o = orc.Oracle(records)
    out, cnt, truth = [("every walk", b) for b in broken], 0, [0, 0]
    open_ids = {rid_text(q.id) for q in o.requests.values() if not q.over}
    for q in o.requests.values():
        name = rid_text(q.id)
        if name not in reqs:
            out.append((name, "not among the engine's requests"))
            continue
        start, end, state, lines = reqs[name]
        cnt += 1
        if not q.over:
            bad = exact(lines, start, end) if state == "in_flight" else f"is {state}"
            if bad:
                out.append((name, bad))
            continue
        if (start, end, state) != (q.arrival, q.end, "done"):
            out.append((name, f"is {start}..{end} {state}, should be {q.arrival}..{q.end} done"))
            continue
        bad = guarded(o.path(q), lines, start, end)
        if bad and (w.family in EXACT_ONLY or leans(lines, open_ids)):
            bad = exact(lines, start, end)
        if bad:
            out.append((name, bad))
        else:
            held_truth(w, o, tree(lines), truth)
    for name in reqs if o.requests else ():
        if name not in [rid_text(x) for x in o.requests]:
            out.append((name, "is no request"))
    if len(walks) != len(w.queries):
        out.append(("walks", f"{len(walks)} answers to {len(w.queries)} queries"))
    for (tid, lo, hi), (_, _, _, lines) in zip(w.queries, walks):
        cnt += 1
        bad = guarded(o.walk(tid, lo, hi), lines, lo, hi)
        if bad:
            out.append((f"walk of {tid} [{lo},{hi})", bad))
    return out, cnt, truth


def held_truth(w, o, nodes, truth):
    """Adds to truth [right, wrong] ns of lock pieces, against who had the simulated lock."""
    for n in nodes:
        held_truth(w, o, n.kids, truth)
        if n.cls != "lock" or not n.holder or not getattr(w, "locks", None):
            continue
        key = o.task(n.tid).span_before(n.end).ep.key
        for tid, start, end in (h for m in w.locks if m.addr == key for h in m.holds()):
            truth[tid != n.holder] += max(0, min(end, n.end) - max(start, n.start))


def leans(lines, open_ids):
    """Who works for a request that is not over yet is the engine's guess; no rule tells it."""
    return any(x.split("=", 1)[1] in open_ids for f in lines for x in f if x[:3] in ("for", "by="))


def exact(lines, lo, hi):
    try:
        return orc.check_exact(tree(lines), lo, hi)
    except ValueError as e:
        return str(e)


def guarded(want, lines, lo, hi):
    try:
        return differ(want, tree(lines), lo, hi)
    except ValueError as e:
        return str(e)


def frames_of(name, seeds):
    worlds = []
    for seed in seeds:
        w = families.make(name, seed, ticks=(seed % 4) * TICKS)
        worlds.append((seed, w, families.stream(w, seed)))
    data = b"".join(schedule.frame(r + [schedule.query(*q) for q in w.queries])
                    for _, w, r in worlds)
    return worlds, data


def run_batch(job):
    path, name, seeds = job
    worlds, data = frames_of(name, seeds)
    p = subprocess.run([path, str(WALKS)], input=data, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, timeout=300, check=False)
    frames = parse(p.stdout.decode())
    bad, cnt, truth = [], 0, [0, 0]
    if p.returncode or len(frames) != len(worlds):
        bad.append((seeds[0], "driver", f"exit {p.returncode} after {len(frames)} of {len(worlds)} "
                    f"frames: {p.stderr.decode()[-500:]}"))
    for (seed, w, records), frame in zip(worlds, frames):
        out, n, t = compare_world(w, records, frame)
        cnt += n
        truth = [truth[0] + t[0], truth[1] + t[1]]
        bad += [(seed, what, text) for what, text in out]
        if "malformed=0" not in frame[2]:
            bad.append((seed, "records", frame[2]))
    return name, len(worlds), cnt, bad, truth


def run_families(per_family, first=0, only=None, batch=100, show=2):
    """Compares per_family schedules of each family on both cores. Returns (passed, failed)."""
    path = driver()
    names = only or list(families.FAMILIES)
    jobs = [(path, n, range(s, min(s + batch, first + per_family)))
            for s in range(first, first + per_family, batch) for n in names]
    total = {n: [0, 0, [], [0, 0]] for n in names}
    with multiprocessing.Pool(2) as pool:
        for name, schedules, cnt, bad, truth in pool.imap_unordered(run_batch, jobs):
            t = total[name]
            total[name] = [t[0] + schedules, t[1] + cnt, t[2] + bad,
                           [t[3][0] + truth[0], t[3][1] + truth[1]]]
    failed = sum(not report(name, *t, show) for name, t in total.items())
    cnt = sum(t[0] for t in total.values())
    print(f"{cnt} schedules compared, {sum(t[1] for t in total.values())} answers; "
          f"{cnt * WALKS} walks more are exact")
    return len(names) - failed, failed


def report(name, schedules, cnt, bad, truth, show):
    """Prints one family's result; true when it is right."""
    text = f"{name:16s} {schedules} schedules, {cnt} paths and walks, {len(bad)} differ"
    wrong = truth[1] / sum(truth) if sum(truth) else 0
    if sum(truth):
        text += f"; wrong holder {100 * wrong:.2f} % of {sum(truth)} ns"
    print(text)
    for seed, what, complaint in sorted(bad, key=lambda b: len(b[2]))[:show]:
        print(f"  seed {seed}, {what}: {complaint}")
    lossless = not families.FAMILIES[name][1].get("loss")
    return not bad and cnt > 0 and not (lossless and wrong > WRONG_HOLDER_MAX)
