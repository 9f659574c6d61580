# SPDX-License-Identifier: Apache-2.0
"""The plain bounded walk: a second reference, older than the oracle and independent of it. It knows
no locks, identities or losses.

G maps a task to {"segs": [(kind, start, end, wake)], "birth": (time, parent, fork time)}; kind is RUN,
RUNQ or BLOCKED; wake is (waker, time) or ("LEAF", class)."""


def walk(G, T, lo, hi, stack=()):
    """Covers [lo, hi) on T's behalf: [(task, class, start, end)] in time order, an exact partition."""
    res, t = [], hi  # latest first
    segs = G.get(T, {}).get("segs", [])
    while t > lo:
        s = None
        for x in segs:
            if x[1] < t <= x[2]:
                s = x
        if s is None:
            b = G.get(T, {}).get("birth")
            if b and (b[0] == t or (b[0] >= t and not any(x[1] < t for x in segs))):
                P, ps = b[1], b[2]
                if ps < t:
                    res.append((P, "FORK", max(ps, lo), t))
                if ps > lo:
                    res += walk(G, P, lo, min(ps, t), stack + (T,))[::-1]
                break
            prev = [x for x in segs if x[2] < t]
            a = max(lo, prev[-1][2]) if prev else lo
            res.append((T, "UNKNOWN", a, t))
            t = a
            continue
        kind, a0, b0 = s[0], s[1], s[2]
        w = s[3] if len(s) > 3 else None
        a = max(a0, lo)
        if kind in ("RUN", "RUNQ"):
            res.append((T, kind, a, t))
        elif w is None:
            res.append((T, "BLOCKED", a, t))
        elif w[0] == "LEAF":
            res.append((T, w[1], a, t))
        elif t < b0:
            res.append((T, "OPEN", a, t))
        elif w[0] in stack + (T,):
            res.append((T, "CYCLE", a, t))
        else:
            W, src = w[0], w[1]
            if src < t:
                res.append((W, "TRANSIT", max(src, a), t))
            if src > a:
                res += walk(G, W, a, min(src, t), stack + (T,))[::-1]
        t = a
    return res[::-1]


def merge(r):
    out = []
    for x in r:
        if out and out[-1][0] == x[0] and out[-1][1] == x[1] and out[-1][3] == x[2]:
            out[-1] = (x[0], x[1], out[-1][2], x[3])
        else:
            out.append(x)
    return out
