# SPDX-License-Identifier: Apache-2.0
# Sourced by live tests: what every one of them needs. Counts cases and closes with the line that
# tests/run adds up.
: "${BUILD:?}" "${CRITICAST:?}"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tmp=$(mktemp -d) || exit 1
passed=0 failed=0 skipped=0
own_pids=()
cleanup() {
	for p in "${own_pids[@]}"; do kill "$p" 2>/dev/null; done
	rm -rf "$tmp"
}
trap cleanup EXIT

skip_all() { echo "skipped: $*"; exit 77; }

# Live tracing has to work here, else the whole test is skipped with the reason.
need_tracing() {
	sleep 30 &
	local pid=$! rc
	own_pids+=("$pid")
	"$CRITICAST" record --pid "$pid" --dur 200ms --out "$tmp/probe.criticast" 2>"$tmp/probe.err"
	rc=$?
	kill "$pid"
	[ $rc -ne 3 ] || skip_all "$(tail -n 1 "$tmp/probe.err")"
	[ $rc -eq 0 ] || { cat "$tmp/probe.err"; exit 1; }
}

# attached FILE: waits until the recorder that writes FILE traces; it makes the file when it does.
attached() {
	local i
	for ((i = 0; i < 900; i++)); do
		[ -e "$1" ] && return
		sleep 0.1
	done
	echo "the recorder has not attached within 90 s"
	return 1
}

# case NAME COMMAND...: runs it, prints its output and how it went.
case_run() {
	local name=$1
	shift
	if "$@"; then
		passed=$((passed + 1)) && echo "ok   $name"
	else
		failed=$((failed + 1)) && echo "FAIL $name"
	fi
}

finish() {
	echo "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" -eq 0 ]
}
