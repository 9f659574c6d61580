# SPDX-License-Identifier: Apache-2.0
"""postgres under pgbench, whose log (-l) has every transaction in us of its own clock."""
import glob
import os
import pwd
import re
import subprocess
import time

import req_lib as q
from truth import Req

BINS = sorted(glob.glob("/usr/lib/postgresql/*/bin"))


class Postgres:
    """A server of our own on a free port, that logs who connected from where under which name."""

    def __init__(self):
        user = pwd.getpwnam("postgres")  # the server refuses to run as root
        self.who = dict(user=user.pw_uid, group=user.pw_gid, extra_groups=[])
        self.dir, self.port = q.tmpdir(), q.free_port()
        os.chown(self.dir, user.pw_uid, user.pw_gid)
        self.data, self.log = self.dir + "/data", open(self.dir + "/log", "w+")
        subprocess.run([BINS[-1] + "/initdb", "-D", self.data, "-A", "trust", "--no-sync", "-E", "UTF8",
                        "--no-locale"], stdout=subprocess.DEVNULL, check=True, cwd=self.dir, **self.who)
        self.p = q.start([BINS[-1] + "/postgres", "-D", self.data, "-p", str(self.port), "-h", "127.0.0.1",
                          "-k", "", "-F", "-c", "autovacuum=off", "-c", "log_connections=on", "-c",
                          "log_line_prefix=%r ", "-c", "deadlock_timeout=60s"],
                         cwd=self.dir, stderr=self.log, **self.who)
        q.wait_until("postgres to answer", lambda: self.sql("SELECT 1", False) == 0)

    def sql(self, text, check=True):
        return subprocess.run([BINS[-1] + "/psql", "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres", "-qX",
                               "-c", text, "postgres"], check=check, cwd=self.dir, stdout=subprocess.DEVNULL,
                              stderr=None if check else subprocess.DEVNULL).returncode

    def ports(self):
        """By the name a client gave itself, the port it came from."""
        with open(self.dir + "/log") as f:
            rows = re.findall(r"127\.0\.0\.1\((\d+)\) LOG:  connection authorized: .*application_name=(\w+)",
                              f.read())
        return {name: int(port) for port, name in rows}  # the last: the first asks what server this is


def postgres(mode, sql, clients=4, n=400):
    """Each client is a process, so that its log has one connection: {(port, ordinal): truth}."""
    pg = Postgres()
    pg.sql("CREATE TABLE t (id int primary key, n int); "
           "INSERT INTO t SELECT i, 0 FROM generate_series(0, 99) i;")
    script = os.path.join(pg.dir, "script")
    with open(script, "w") as f:
        f.write(sql + "\n")

    def load():
        argv = [BINS[-1] + "/pgbench", "-h", "127.0.0.1", "-p", str(pg.port), "-U", "postgres", "-n", "-M", mode,
                "-c", "1", "-t", str(n), "-f", script, "-l", "postgres", "--log-prefix"]
        running = [subprocess.Popen([*argv, pg.dir + "/c%d" % i], cwd=pg.dir, stdout=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL, env={**os.environ, "PGAPPNAME": "c%d" % i},
                                    **pg.who) for i in range(clients)]
        if any([p.wait() for p in running]):
            raise RuntimeError("pgbench failed")
        time.sleep(0.2)
        ports, truth, before = pg.ports(), {}, mode == "prepared"
        for i in range(clients):
            port = ports["c%d" % i]
            if before:
                truth[port, 1] = None  # PREPARE is an exchange of its own, and in no log
            (log,) = glob.glob(pg.dir + "/c%d.*" % i)
            with open(log) as f:
                for nr, line in enumerate(f):
                    truth[port, nr + 1 + before] = Req(int(line.split()[2]) * 1000)
        return truth
    return pg.p.pid, load
