# SPDX-License-Identifier: Apache-2.0
"""Four servers as distributions ship them, each with a load that makes it wait all the time."""
import glob
import os
import pwd
import shutil
import socket
import subprocess
import sys
import time

MEMCACHED_LOAD = """
import socket, sys, threading
def client():
    s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    i = 0
    while True:
        s.sendall(b"get k\\r\\n" if i % 3 else b"set k 0 0 5\\r\\nhello\\r\\n")
        s.recv(4096)
        i += 1
for _ in range(4):
    threading.Thread(target=client).start()
"""

NGINX_CONF = """
daemon off; master_process on; worker_processes 2; pid {d}/pid; error_log {d}/err;
events {{ worker_connections 256; }}
http {{ access_log {d}/access.log; client_body_temp_path {d}/b; proxy_temp_path {d}/p;
  fastcgi_temp_path {d}/f; uwsgi_temp_path {d}/u; scgi_temp_path {d}/s;
  server {{ listen 127.0.0.1:{port}; location / {{ root {d}/www; }} }} }}
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """name: of the server; pid: to trace. Both it and its load end with close()."""

    def __init__(self, name, tmp):
        self.name, self.dir, self.procs = name, os.path.join(tmp, name), []
        os.mkdir(self.dir)
        self.port = free_port()
        try:
            getattr(self, name)()
        except BaseException:
            self.close()
            raise

    def run(self, argv, **how):
        p = subprocess.Popen([str(a) for a in argv], stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **how)
        self.procs.append(p)
        return p.pid

    def serve(self, argv, **how):
        self.pid = self.run(argv, **how)
        for _ in range(300):
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except OSError:
                time.sleep(0.1)
        raise RuntimeError(self.name + " does not listen")

    def close(self):
        for p in reversed(self.procs):
            p.terminate()
        for p in self.procs:
            try:
                p.wait(10)
            except subprocess.TimeoutExpired:
                p.kill()

    def redis(self):
        self.serve(["redis-server", "--port", self.port, "--save", "", "--dir", self.dir])
        self.run(["redis-benchmark", "-p", self.port, "-c", 2, "-n", 10 ** 8, "-t", "get,set", "-q"])

    def memcached(self):
        self.serve(["memcached", "-u", "root", "-l", "127.0.0.1", "-p", self.port, "-t", 2])
        self.run([sys.executable, "-c", MEMCACHED_LOAD, self.port])

    def nginx(self):
        os.chmod(self.dir, 0o755)
        os.mkdir(self.dir + "/www")
        with open(self.dir + "/www/index.html", "w") as f:
            f.write("x" * 2000)
        with open(self.dir + "/nginx.conf", "w") as f:
            f.write(NGINX_CONF.format(d=self.dir, port=self.port))
        self.serve([shutil.which("nginx") or "/usr/sbin/nginx", "-c", self.dir + "/nginx.conf"])
        self.run(["wrk", "-t", 1, "-c", 3, "-d", "1h", f"http://127.0.0.1:{self.port}/"])

    def postgres(self):
        bins = sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1]
        user = pwd.getpwnam("postgres")
        os.chmod(self.dir, 0o755)
        data = self.dir + "/data"
        os.mkdir(data)
        os.chown(data, user.pw_uid, user.pw_gid)
        who = dict(user=user.pw_uid, group=user.pw_gid, extra_groups=[], cwd=data)
        quiet = dict(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        subprocess.run([bins + "/initdb", "-D", data, "-A", "trust", "--no-sync"], **quiet, **who)
        self.serve([bins + "/postgres", "-D", data, "-p", self.port, "-h", "127.0.0.1", "-k", "",
                    "-c", "fsync=off"], **who)
        to = ["-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres"]
        for _ in range(100): # it listens before it is ready
            if not subprocess.run([bins + "/psql", *to, "-c", "", "postgres"],
                                  **dict(quiet, check=False)).returncode:
                break
            time.sleep(0.1)
        subprocess.run([bins + "/pgbench", "-i", "-s", "1", "-q", *to, "postgres"], **quiet)
        self.run([bins + "/pgbench", "-c", 4, "-T", 3600, "-n", *to, "postgres"])


NAMES = ["nginx", "redis", "memcached", "postgres"]


def missing(name):
    """What this machine lacks for that server; None: nothing."""
    need = {"nginx": ["nginx", "wrk"], "redis": ["redis-server", "redis-benchmark"],
            "memcached": ["memcached"], "postgres": []}[name]
    for program in need:
        if not shutil.which(program) and not os.path.exists("/usr/sbin/" + program):
            return program
    if name == "postgres" and not glob.glob("/usr/lib/postgresql/*/bin/pgbench"):
        return "pgbench"
    return None
