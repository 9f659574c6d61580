# SPDX-License-Identifier: Apache-2.0
"""postgres under pgbench, whose log (-l) has every transaction in us of its own clock; its waits for locks by the
server's own log."""
import glob
import os
import re
import subprocess
import time

import pg_lib
from truth import Req

SAID_AFTER_MS = 5  # so long a wait for a lock is logged


def ports(pg):
    """By the name a client gave itself, the port it came from."""
    with open(pg.log) as f:
        rows = re.findall(r"127\.0\.0\.1\((\d+)\) LOG:  connection authorized: .*application_name=(\w+)",
                          f.read())
    return {name: int(port) for port, name in rows}  # the last: the first asks what server this is


def postgres(mode, sql, clients=4, n=400):
    """Each client is a process, so that its log has one connection: {(port, ordinal): truth}."""
    pg = pg_lib.Postgres("log_connections=on", "log_line_prefix=%r ")
    pg.sql("CREATE TABLE t (id int primary key, n int); "
           "INSERT INTO t SELECT i, 0 FROM generate_series(0, 99) i;")
    script = os.path.join(pg.dir, "script")
    with open(script, "w") as f:
        f.write(sql + "\n")

    def load():
        argv = [*pg.client("pgbench"), "-n", "-M", mode, "-c", "1", "-t", str(n), "-f", script, "-l",
                "postgres", "--log-prefix"]
        running = [subprocess.Popen([*argv, pg.dir + "/c%d" % i], cwd=pg.dir, stdout=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL, env={**os.environ, "PGAPPNAME": "c%d" % i},
                                    **pg.who) for i in range(clients)]
        if any([p.wait() for p in running]):
            raise RuntimeError("pgbench failed")
        time.sleep(0.2)
        port_of, truth, before = ports(pg), {}, mode == "prepared"
        for i in range(clients):
            port = port_of["c%d" % i]
            if before:
                truth[port, 1] = None  # PREPARE is an exchange of its own, and in no log
            (log,) = glob.glob(pg.dir + "/c%d.*" % i)
            with open(log) as f:
                for nr, line in enumerate(f):
                    truth[port, nr + 1 + before] = Req(int(line.split()[2]) * 1000)
        return truth
    return pg.pid, load


def lock_waits(text, since):
    """[(pid of who waited, from, to, pids that had the lock)], by the server's log. since: ns between its clock,
    which shows ms, and CLOCK_MONOTONIC."""
    holders, waits = {}, []  # of a row's lock the next one in line is another holder to those behind it
    for line in text.splitlines():
        if m := re.match(r"[\d.]+ (\d+) DETAIL:  Process(?:es)? holding the lock: ([\d, ]+)\. Wait queue: \1\b", line):
            holders[int(m[1])] = [int(x) for x in m[2].split(",")]
        elif m := re.match(r"([\d.]+) (\d+) LOG:  process \d+ acquired \w+ on .* after ([\d.]+) ms", line):
            end, pid = round(float(m[1]) * 1e9) - since, int(m[2])
            if pid in holders:
                waits.append((pid, end - round(float(m[3]) * 1e6), end, holders.pop(pid)))
    return waits


def realtime_ahead():
    """ns by which the wall clock is ahead of CLOCK_MONOTONIC: of some looks, the one nothing came between."""
    looks = [(time.monotonic_ns(), time.time_ns(), time.monotonic_ns()) for _ in range(20)]
    before, wall, after = min(looks, key=lambda x: x[2] - x[0])
    return wall - (before + after) // 2


def row_locks(clients=6, n=50, rows=3):
    """Transactions that want the same few rows and keep them for a while; (pid, load), whose truth is what
    lock_waits() gives."""
    pg = pg_lib.Postgres("log_lock_waits=on", "deadlock_timeout=%dms" % SAID_AFTER_MS, "log_line_prefix=%n %p ")
    pg.sql("CREATE TABLE t (id int primary key, n int); "
           "INSERT INTO t SELECT i, 0 FROM generate_series(1, %d) i;" % rows)
    script = os.path.join(pg.dir, "script")
    with open(script, "w") as f:
        f.write("\\set id random(1, %d)\n\\set s random(5, 25)\nBEGIN;\nUPDATE t SET n = n + 1 WHERE id = :id;\n"
                "SELECT pg_sleep(:s / 1000.0);\nCOMMIT;\n" % rows)

    def load():
        since = realtime_ahead()
        subprocess.run([*pg.client("pgbench"), "-n", "-c", str(clients), "-j", "2", "-t", str(n), "-f", script,
                        "postgres"], cwd=pg.dir, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       **pg.who)
        with open(pg.log) as f:
            return lock_waits(f.read(), since)
    return pg.pid, load
