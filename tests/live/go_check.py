#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""go_check RECORDS LOG: what the kernel side told of go_waits, against what it says of itself. Counts, who and whom
are exact; a wait is never longer than its goroutine measured it, and in all hardly shorter."""
import collections
import sys

BORN, OPEN, PREEMPT = 1, 2, 4
SENT, RECEIVED = 1, 2
EXACT, PLACE = 1, 4
FD_PIPE = 5
CLASSES = "unknown cpu stolen runq throttle lock_handoff lock klock mutex sema cond chan select".split()
CLASS = {n: i for i, n in enumerate(CLASSES)}
CLASS["sleep"] = 25
bad = []


def check(ok, text):
    if not ok:
        bad.append(text)


def records(path):
    kinds = collections.defaultdict(list)
    with open(path, encoding="utf-8") as f:
        for line in f:
            kind, *rest = line.split()
            if kind in ("note",):
                continue
            kinds[kind].append({k: int(v) if v.lstrip("-").isdigit() else v for k, v in (w.split("=", 1) for w in rest)})
    return kinds


def log(path):
    kinds = collections.defaultdict(list)
    with open(path, encoding="utf-8") as f:
        for line in f:
            w = line.split()
            key = f"{w[0]} {w[1]}" if w[0] in ("wait", "item") else w[0]
            kinds[key].append([int(x) for x in w[2 if " " in key else 1:]])
    return kinds


R, L = records(sys.argv[1]), log(sys.argv[2])
waits = collections.defaultdict(list)
for r in R["wait"]:
    if not r["flags"] & (BORN | OPEN | PREEMPT):
        waits[r["goid"]].append(r)


def per_goroutine(key):
    ret = collections.defaultdict(list)
    for g, *rest in L[key]:
        ret[g].append(rest)
    return ret


def durations(what, cls, every=True):
    """The waits of each goroutine that logged some of this kind: as many, none longer, not much shorter in all."""
    check(L[f"wait {what}"], f"{what}: nothing logged")
    for g, rows in per_goroutine(f"wait {what}").items():
        seen = [r for r in waits[g] if cls(r)]
        # one that comes late finds what it wants there already and does not wait at all; that it came late
        # because it had no CPU takes as long as a wait, but does so seldom
        sure = len(rows)
        if not every:
            sure = sum(r[0] >= 1000000 for r in rows)
            sure -= max(1, sure // 20)
        check(sure <= len(seen) <= len(rows), f"{what}: goroutine {g} waited {len(rows)} times, {len(seen)} seen")
        if len(seen) == len(rows):
            for r, row in zip(seen, rows):
                check(r["in"] - r["out"] <= row[0], f"{what}: {g}: {r['in'] - r['out']} ns seen of {row[0]}")
            whole = sum(r["in"] - r["out"] > row[0] / 2 for r, row in zip(seen, rows))
            check(whole >= 0.85 * len(rows), f"{what}: {g}: {whole} of {len(rows)} are seen for at least half of their time")
        said = sum(r[0] for r in rows)
        told = sum(r["in"] - r["out"] for r in seen)
        check(0.7 * said <= told <= said, f"{what}: {g} waited {said} ns in all, {told} seen")


def of(name):
    return lambda r: r["class"] == CLASS[name]


durations("sleep", of("sleep"))
durations("cond", of("cond"), every=False)
durations("io", lambda r: r["kind"] == FD_PIPE, every=False)
durations("mutex", of("mutex"), every=False)
durations("select", of("select"), every=False)

items = R["item"]
direct = collections.Counter((a, b) for a, b in L["item direct"])
told = collections.Counter((r["goid"], r["peer"]) for r in items if r["what"] == SENT and r["how"] == EXACT)
taken = collections.Counter((r["peer"], r["goid"]) for r in items if r["what"] == RECEIVED and r["how"] == EXACT)
for pair, n in direct.items():
    check(told[pair] + taken[pair] == n, f"direct: {pair}: {n} items, {told[pair]} given, {taken[pair]} taken")
    chan = [r for r in waits[pair[1]] if of("chan")(r)]
    check(len(chan) == told[pair], f"direct: {len(chan)} waits of the receiver, {told[pair]} items given to it")
    check(all(r["waker"] == pair[0] and r["wake"] for r in chan), "direct: a wait not ended by the sender")

for pair, n in collections.Counter((a, b) for a, b in L["called"]).items():
    check(told[pair] + taken[pair] == n, f"called by C: {pair}: {n} items, {told[pair]} given, {taken[pair]} taken")

truth = collections.Counter((a, b) for a, b in L["item pool"])
givers = {a for a, _ in truth}
chans = {r["chan"] for r in items if r["goid"] in givers and r["what"] == SENT}
sender, exact = {}, collections.Counter()
for r in sorted(items, key=lambda r: r["ts"]):
    if r["chan"] not in chans:
        continue
    if r["what"] == SENT and r["how"] == EXACT:
        exact[r["goid"], r["peer"]] += 1
    elif r["what"] == SENT:
        sender[r["item"]] = r["goid"]
    elif r["item"] in sender and r["how"] & EXACT:
        exact[sender.pop(r["item"]), r["goid"]] += 1
    elif r["peer"]:
        exact[r["peer"], r["goid"]] += 1
wrong = sum((exact - truth).values())
check(wrong == 0, f"pool: {wrong} of {sum(exact.values())} exact hand-offs were none")
right = sum((exact & truth).values())
total = sum(truth.values())
check(right == total, f"pool: {right} of {total} items followed")
check(sum(exact.values()) > 0, "pool: no exact hand-off at all")

for child, parent in L["born"]:
    t = [r for r in R["task"] if r["goid"] == child and r["what"] == 1]
    check(len(t) == 1 and t[0]["parent"] == parent, f"born: {child} of {parent}: {[r['parent'] for r in t]}")
    b = [r for r in R["wait"] if r["goid"] == child and r["flags"] & BORN]
    check(len(b) == 1 and b[0]["waker"] == parent, f"born: {child}: {len(b)} first waits")
    d = [r for r in R["task"] if r["goid"] == child and r["what"] == 3]
    check(len(d) == 1, f"born: {child}: {len(d)} ends")

holders = {g for (g,) in L["holder"]}
objects = {}
for g, rows in per_goroutine("wait mutex").items():
    m = [r for r in waits[g] if of("mutex")(r)]
    check(len(m) >= 0.9 * len(rows), f"mutex: {len(m)} waits of {len(rows)}")
    check(all(r["waker"] in holders for r in m), f"mutex: {g}: not ended by the holder")
    objects[g] = {r["object"] for r in m}
    check(len(objects[g]) == 1 and 0 not in objects[g], f"mutex: {g}: {objects[g]}")
check(len(set.union(*objects.values())) == 2, f"mutex: two locks, told as {objects}")

durations("locked", of("chan"), every=False)
for g, tid in L["locked"]:
    check(waits[g] and all(r["tid"] == tid == r["in_tid"] for r in waits[g]), f"locked: {g} left its thread {tid}")

for g, start, end in L["call"]:
    w = [r for r in waits[g] if r["out"] < end and r["in"] > start]
    check(not w, f"call of C: {g} in [{start}, {end}): {w}")

for (g,) in L["stuck"]:
    o = [r for r in R["wait"] if r["goid"] == g and r["flags"] & OPEN]
    check(len(o) == 1 and o[0]["class"] == CLASS["chan"] and o[0]["ustack"], f"stuck: {g}: {o}")

for g, before in L["early"]:
    ((after,),) = L["seen"]
    o = [r for r in R["wait"] if r["goid"] == g and r["flags"] & OPEN]
    e = [r for r in R["wait"] if r["goid"] == g and not r["flags"] & OPEN]
    check(len(o) == 1 and o[0]["class"] == CLASS["chan"] and o[0]["object"] and o[0]["ustack"], f"early: {g}: {o}")
    check(len(o) == 1 and before <= o[0]["out"] <= after, f"early: waits since {before} or {after}, told {o}")
    check(len(e) == 1 and len(o) == 1 and e[0]["out"] == o[0]["out"] and e[0]["waker"] and e[0]["object"] == o[0]["object"], f"early: {e}")

seqs = collections.defaultdict(list)
for r in R["wait"]:
    if not r["flags"] & OPEN:
        seqs[r["goid"]].append(r["seq"])
    check(r["out"] <= (r["wake"] or r["in"]) <= r["in"], f"order of {r}")
check(all(s == list(range(s[0], s[0] + len(s))) for s in seqs.values()), "a gap in the numbers of a goroutine's waits")
check(not R["loss"], f"losses: {R['loss']}")
d = R["drops"][0]
check(d["go"] == 0 and d["storage"] == 0, f"drops: {d}")
p = R["proc"][0]
check(p["state"] == 1 and p["bad"] == 0 and p["good"] >= 4, f"offsets: {p}")
keys = {r["key"] for r in R["stack"]}
# The stack of a sleep is taken by who ends it. The runtime's own scavenger is ended by its monitor,
# past every probe, and then nobody takes it: a sleep that nobody is seen to end may have none.
# Of those of less than 20 times --stack-min some may be left out: there is a budget.
slow = [r for r in R["wait"] if not r["flags"] & (BORN | PREEMPT) and (r["wake"] or r["in"]) - r["out"] > 1000000]
unseen = [r for r in slow if not r["wake"] and not r["flags"] & OPEN and of("sleep")(r)]
check(len(unseen) <= 2 and not {r["goid"] for r in unseen} & {g for g, *_ in L["wait sleep"]}, f"sleeps nobody ended: {unseen}")
slow = [r for r in slow if r not in unseen]
bare = [r for r in slow if r["ustack"] not in keys and not r["flags"] & OPEN]
check(not bare, f"slow waits without their stack: {[((r['wake'] or r['in']) - r['out'], r['class'], r['wake'] > 0, r['ustack']) for r in bare]}")
# whom a thread of C's called has no start of its own: C is beneath
from_c = {r["ustack"] for g, _ in L["called"] for r in waits[g]}
check(all(s["full"] for s in R["stack"] if s["key"] not in from_c), f"stacks: {R['stack']}")

for text in bad[:20]:
    print(text)
print(f"{len(R['wait'])} waits, {sum(exact.values())} items of {total}, "
      f"{len(L['born'])} births, {len(R['stack'])} stacks; {len(bad)} wrong")
sys.exit(1 if bad else 0)
