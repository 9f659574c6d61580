# SPDX-License-Identifier: Apache-2.0
"""What the tests of export share: running it, what analyze says of the same file, protoc."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
CRITICAST = os.path.abspath(os.environ["CRITICAST"])
DEMO = os.path.join(HERE, "../../testdata/demo.criticast")
_counts = {"passed": 0, "failed": 0, "skipped": 0}


def check(name, ok, more=""):
    _counts["passed" if ok else "failed"] += 1
    if not ok:
        print("FAILED: %s %s" % (name, more))


def equal(name, got, want):
    check(name, got == want, "%.300r, expected %.300r" % (got, want))


def skipped(name, why):
    _counts["skipped"] += 1
    print("skip %s: %s" % (name, why))


def finish():
    print("%(passed)d passed, %(failed)d failed, %(skipped)d skipped" % _counts)
    sys.exit(_counts["failed"] != 0)


def run(*args, **kw):
    return subprocess.run([CRITICAST, *args], capture_output=True, stdin=subprocess.DEVNULL, **kw)


def export(option, *more, trace=DEMO):
    """The bytes that --option writes to stdout."""
    r = run("export", trace, "--" + option, "-", *more)
    check("export --%s %s" % (option, " ".join(more)), r.returncode == 0, r.stderr.decode())
    return r.stdout


def analyze(*more, trace=DEMO):
    return json.loads(run("analyze", trace, "--format", "json", *(more or ("--top", "0"))).stdout)


def tmpdir():
    d = tempfile.TemporaryDirectory(prefix="cc-export-")
    return d, d.name


def total(told):
    return sum(r["path_sum_ns"] for r in told["requests"])


def leaves(request):
    """The deepest pieces."""
    path = request["path"]
    return [p for p, after in zip(path, path[1:] + [None])
            if not after or after["depth"] <= p["depth"]]


# ---- JSON that is to be a message of proto/ ----

def schema(proto):
    """{message: {JSON name: (repeated, type)}}; protoc says that it is one."""
    path = os.path.join(HERE, "proto", proto)
    if shutil.which("protoc"):
        r = subprocess.run(["protoc", "-o", os.devnull, "-I", os.path.dirname(path), path], capture_output=True)
        check("protoc takes " + proto, r.returncode == 0, r.stderr.decode())
    messages = {}
    for name, body in re.findall(r"^message (\w+) \{(.*?)\}\s*$", open(path).read(), re.M | re.S):
        fields = re.findall(r"(repeated )?\b(\w+) (\w+) = \d+;", body)
        messages[name] = {re.sub(r"_(.)", lambda m: m.group(1).upper(), field): (bool(many), kind)
                          for many, kind, field in fields}
    return messages


def _is(kind, v):
    # 64-bit numbers are strings in protobuf's JSON; OTLP has its ids in hex
    if kind == "bytes":
        return isinstance(v, str) and re.match(r"([0-9a-f]{16}|[0-9a-f]{32})$", v)
    if kind.endswith("int64") or kind == "fixed64":
        return isinstance(v, str) and re.match(r"-?[0-9]+$", v) and -1 << 63 <= int(v) < 1 << 64
    if kind == "int32":
        return type(v) is int and -1 << 31 <= v < 1 << 31
    return isinstance(v, {"string": str, "bool": bool}[kind])


def unlike(messages, name, v, where=""):
    """Where @v is not what message @name may be; [] when it is."""
    if not isinstance(v, dict):
        return [where or name]
    wrong = []
    for key, x in v.items():
        many, kind = messages[name].get(key, (False, None))
        if kind is None or many != isinstance(x, list):
            wrong.append(f"{where}.{key}")
            continue
        for i, item in enumerate(x if many else [x]):
            at = f"{where}.{key}[{i}]"
            if kind in messages:
                wrong += unlike(messages, kind, item, at)
            elif not _is(kind, item):
                wrong.append(f"{at} = {item!r}, not {kind}")
    return wrong


# ---- protoc --decode, read back ----

PLAIN = re.compile(r"\\([0-7]{3}|.)")


def _value(text):
    if text[0] != '"':
        return {"true": True, "false": False}.get(text, int(text) if re.match(r"-?\d+$", text) else text)
    names = {"n": "\n", "r": "\r", "t": "\t"}

    def plain(m):
        s = m.group(1)
        return chr(int(s, 8)) if len(s) == 3 else names.get(s, s)
    return PLAIN.sub(plain, text[1:-1]).encode("latin-1").decode()


def decode(proto, message, data):
    """Every field of the message as a list, by protoc and the schema in proto/."""
    if not shutil.which("protoc"):
        return None
    r = subprocess.run(["protoc", "--decode=" + message, "-I", os.path.join(HERE, "proto"), proto],
                       input=data, capture_output=True)
    check("protoc reads it", r.returncode == 0, r.stderr.decode())
    top = {}
    stack = [top]
    for line in r.stdout.decode("latin-1").split("\n"):
        key, colon, value = line.strip().partition(": ")
        if key == "}":
            stack.pop()
        elif colon:
            stack[-1].setdefault(key, []).append(_value(value))
        elif key:
            inner = {}
            stack[-1].setdefault(key[:-2], []).append(inner)
            stack.append(inner)
    unknown = list(_numbers(top))
    check("no field that the schema does not know", not unknown, unknown[:3])
    return top


def _numbers(message):
    """Names of fields that protoc has no name for, at any depth."""
    for key, values in message.items():
        if key.isdigit():
            yield key
        for v in values:
            if isinstance(v, dict):
                yield from _numbers(v)
