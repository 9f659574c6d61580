# SPDX-License-Identifier: Apache-2.0
"""What went over the wire: each exchange of a TCP connection, from the packet that brought the first
byte of a request to the one that brought the last byte of its answer, as the kernel's packet capture
timed them. A truth that knows neither sockets nor turns of somebody's event loop."""
import os
import re
import shutil
import signal
import struct
import subprocess
import time

import req_lib as q

SNAP = 128  # bytes of each packet: its headers; payloads are of no interest
HEAD, PACKET = struct.Struct("=IHHiIII"), struct.Struct("=IIII")
NANO_MAGIC, ETHERNET = 0xa1b23c4d, 14


def listening(pid):
    """TCP ports a process listens on."""
    inodes = set()
    for fd in os.listdir("/proc/%d/fd" % pid):
        try:
            name = os.readlink("/proc/%d/fd/%s" % (pid, fd))
        except FileNotFoundError:
            continue
        if name.startswith("socket:["):
            inodes.add(name[8:-1])
    with open("/proc/net/tcp") as f:
        rows = [line.split() for line in f][1:]
    return {int(r[1].split(":")[1], 16) for r in rows if r[3] == "0A" and r[9] in inodes}


class Wire:
    """Captures the exchanges with these ports of ours while in its with block; afterwards .spans:
    client port -> ns of each exchange, in order; None when there is no capture, or it has gaps."""

    def __init__(self, ports):
        self.ports, self.spans, self.p = ports, None, None

    def __enter__(self):
        if not shutil.which("tcpdump") or not self.ports:
            return self
        self.file = os.path.join(q.tmpdir(), "pcap")
        self.p = q.start(["tcpdump", "-i", "lo", "-n", "-B", "65536", "-s", str(SNAP), "-w", self.file,
                          "-Z", "root", "--time-stamp-precision=nano",
                          "tcp and (%s)" % " or ".join("port %d" % x for x in self.ports)],
                         stderr=subprocess.PIPE, text=True)
        while "listening on" not in (line := self.p.stderr.readline()):
            if not line:
                self.p = None  # no capture here
                break
        return self

    def __exit__(self, kind, *_):
        if not self.p:
            return
        time.sleep(1.2)  # it gets them by the block, which is handed to it after a second at the latest
        self.p.send_signal(signal.SIGINT)
        said = [int(x) for x in re.findall(r"(\d+) packets", self.p.communicate()[1])]
        # what went over lo is seen going and coming, and kept once; some others came before the filter
        if kind is None and len(said) == 3 and 2 * said[0] >= said[1] - 50 and said[2] == 0:
            self.spans = exchanges(self.file, self.ports)


def packets(file):
    """(ns, source port, destination port, first sequence number, bytes of payload), those with any."""
    with open(file, "rb") as f:
        data = f.read()
    if HEAD.unpack_from(data)[0] != NANO_MAGIC:
        raise ValueError("a capture without nanoseconds")
    at = HEAD.size
    while at + PACKET.size <= len(data):
        sec, ns, kept, size = PACKET.unpack_from(data, at)
        at += PACKET.size
        ip = at + ETHERNET
        tcp = ip + (data[ip] & 15) * 4
        src, dst, seq = struct.unpack_from("!HHI", data, tcp)
        payload = size - (tcp - at) - (data[tcp + 12] >> 4) * 4
        at += kept
        if payload > 0:
            yield sec * 10**9 + ns, src, dst, seq, payload


def exchanges(file, ports):
    """An exchange is what the client sent and what the server sent until the client sends again."""
    conns = {}
    for ns, src, dst, seq, size in packets(file):
        asks = dst in ports
        turns, seen = conns.setdefault(src if asks else dst, ([], set()))
        if (asks, seq, size) in seen:
            continue  # sent again
        seen.add((asks, seq, size))
        if asks and (not turns or turns[-1][1]):
            turns.append([ns, 0])
        elif not asks and turns:
            turns[-1][1] = ns
    return {port: [end - begin for begin, end in turns if end] for port, (turns, _) in conns.items()}
