# SPDX-License-Identifier: Apache-2.0
"""A postgres of our own on a free port."""
import glob
import os
import pwd
import subprocess

import req_lib as q

BINS = sorted(glob.glob("/usr/lib/postgresql/*/bin"))


def program(name):
    return os.path.join(BINS[-1], name)


def user():
    """Under which it runs: it refuses to run as root. None: it cannot run here."""
    try:
        return pwd.getpwnam("postgres") if BINS else None
    except KeyError:
        return None


def need():
    if not user():
        q.skip("no postgres on this machine")


class Postgres:
    """log has the server's own words; options are more of its settings."""

    def __init__(self, *options):
        u = user()
        self.who = dict(user=u.pw_uid, group=u.pw_gid, extra_groups=[])
        self.dir, self.port = q.tmpdir(), q.free_port()
        os.chown(self.dir, u.pw_uid, u.pw_gid)
        data, self.log = self.dir + "/data", self.dir + "/log"
        subprocess.run([program("initdb"), "-D", data, "-A", "trust", "--no-sync", "-E", "UTF8",
                        "--no-locale"], stdout=subprocess.DEVNULL, check=True, cwd=self.dir, **self.who)
        settings = ["autovacuum=off", "deadlock_timeout=60s", *options]
        with open(self.log, "w") as log:
            self.p = q.start([program("postgres"), "-D", data, "-p", str(self.port), "-h", "127.0.0.1", "-k", "",
                              "-F", *[x for s in settings for x in ("-c", s)]],
                             cwd=self.dir, stderr=log, **self.who)
        self.pid = self.p.pid
        q.wait_until("postgres to answer", lambda: self.sql("SELECT 1", check=False) == 0)

    def client(self, name):
        return [program(name), "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres"]

    def sql(self, text, check=True):
        return subprocess.run([*self.client("psql"), "-qX", "-c", text, "postgres"], check=check, cwd=self.dir,
                              stdout=subprocess.DEVNULL, stderr=None if check else subprocess.DEVNULL).returncode
