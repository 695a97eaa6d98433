#!/usr/bin/env bash
# Runs a test binary for at most TSUMUGI_TEST_SECONDS seconds (1200 if unset), so that a
# test that hangs is a failure with a name:
#
#   ci/limit.sh BINARY ARGUMENT...
#
# cargo calls it as its runner (CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER). When the
# time is up, it prints the processes that are left with their command lines, and their
# threads, whose names are the first 15 letters of their tests; with gdb also their
# backtraces. Then it kills all processes that the binary has started.
set -uo pipefail
# The binary of all documentation tests runs each test in a process of its own only if
# rustdoc starts it directly, or if this variable has the path of the binary.
[[ "$1" == */rustdoctest* ]] && export RUSTDOC_DOCTEST_BIN_PATH=$1
seconds=${TSUMUGI_TEST_SECONDS:-1200}
# With job control the binary has a process group of its own, in which its children are.
set -m
"$@" &
binary=$!
set +m
trap 'kill -TERM -- "-$binary" 2>/dev/null; exit 130' INT TERM HUP
(
    # Closed, so that a reader of this script's output does not wait for the timer.
    exec >/dev/null 2>&1 </dev/null
    exec sleep "$seconds"
) &
clock=$!
wait -n "$binary" "$clock"
code=$?
if ! kill -0 "$binary" 2>/dev/null; then
    kill "$clock" 2>/dev/null
    wait "$binary" 2>/dev/null
    exit "$code"
fi
# test_of NAME: prints the tests whose names begin with NAME, if there are at most five.
test_of() {
    local all
    all=$(timeout 10 "${command[@]}" --list 2>/dev/null | sed -n 's/: test$//p' |
        awk -v name="$1" 'index($0, name) == 1')
    [[ -z $all || $(wc -l <<<"$all") -gt 5 ]] || echo " ($(paste -sd' ' <<<"$all"))"
}
command=("$@")
{
    echo
    echo "limit: $(basename "$1") has not ended after $seconds s. Its processes and threads:"
    for process in $(pgrep -g "$binary"); do
        echo "  process $process: $(tr '\0' ' ' <"/proc/$process/cmdline")"
        for thread in "/proc/$process/task"/*; do
            name=$(cat "$thread/comm")
            state=$(sed -n 's/^State:\t//p' "$thread/status")
            echo "    thread $name$(test_of "$name"): state $state"
        done
        if command -v gdb >/dev/null; then
            timeout 60 gdb -p "$process" -batch -ex 'thread apply all backtrace 12' 2>/dev/null |
                grep -E '^(Thread|#)' | sed 's/^/    /'
        fi
    done
} >&2 2>/dev/null
kill -KILL -- "-$binary"
wait "$binary" 2>/dev/null
echo "limit: $(basename "$1"): killed after $seconds s" >&2
exit 124
