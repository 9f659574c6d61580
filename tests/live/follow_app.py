# SPDX-License-Identifier: Apache-2.0
"""follow_app.py redis|postgres BACK-PORT OWN BACK LOG: an HTTP server, a thread for each connection, that
waits OWN s itself and then BACK s for a server behind it, over a connection kept for it. Says its port. A
line of LOG per request: ns of CLOCK_MONOTONIC when it was there, called, had the answer, was answered."""
import os
import socket
import sys
import threading
import time

kind, back, own, sleep, log = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4]), sys.argv[5]
log = os.open(log, os.O_CREAT | os.O_APPEND | os.O_WRONLY)


def redis():
    s = socket.create_connection(("127.0.0.1", back))

    def call():
        s.sendall(b"DEBUG SLEEP %f\r\n" % sleep)
        s.recv(4096)
    return call


def postgres():
    import psycopg2
    conn = psycopg2.connect(host="127.0.0.1", port=back, user="postgres", dbname="postgres")
    conn.autocommit = True
    cursor = conn.cursor()

    def call():
        cursor.execute("SELECT pg_sleep(%f)" % sleep)
        cursor.fetchall()
    return call


def conn(c):
    call = {"redis": redis, "postgres": postgres}[kind]()
    data = b""
    while part := c.recv(4096):
        data += part
        if b"\r\n\r\n" not in data:
            continue
        data = b""
        t0 = time.monotonic_ns()
        time.sleep(own)
        t1 = time.monotonic_ns()
        call()
        t2 = time.monotonic_ns()
        c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
        os.write(log, b"%d %d %d %d\n" % (t0, t1, t2, time.monotonic_ns()))


ls = socket.create_server(("127.0.0.1", 0), backlog=64)
print(ls.getsockname()[1], flush=True)
while True:
    c, _ = ls.accept()
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    threading.Thread(target=conn, args=(c,), daemon=True).start()
