# SPDX-License-Identifier: Apache-2.0
"""postgres under pgbench, whose log (-l) has every transaction in us of its own clock."""
import glob
import os
import re
import subprocess
import time

import pg_lib
from truth import Req


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
