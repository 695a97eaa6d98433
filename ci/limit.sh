#!/usr/bin/env bash
# Runs a binary of tests for so long at most: what cargo calls as its runner
# (CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER), so that a test that hangs is a
# failure with a name. When the time is up it prints the processes and threads that
# are left (threads have the names of their tests, as far as 15 letters go; processes
# that a test has started, the roles that they play) and, where gdb is here, what each
# of them does; then it kills all that the binary has started.
# `ci/limit.sh BINARY ARGUMENT...`, seconds in TSUMUGI_TEST_SECONDS, 1200 if unset.
set -uo pipefail
# rustdoc runs each documentation test as a process of its own only if it starts
# the binary of all of them itself, or if this tells that binary where it is.
[[ "$1" == */rustdoctest* ]] && export RUSTDOC_DOCTEST_BIN_PATH=$1
seconds=${TSUMUGI_TEST_SECONDS:-1200}
# The group is the binary's own, with all that it starts.
set -m
"$@" &
binary=$!
set +m
trap 'kill -TERM -- "-$binary" 2>/dev/null; exit 130' INT TERM HUP
(
    # Closed, so that a reader of this script's output need not wait for it.
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
# test_of NAME: the tests whose threads are called that, if they are few.
test_of() {
    local all
    all=$(timeout 10 "${command[@]}" --list 2>/dev/null | sed -n 's/: test$//p' |
        awk -v name="$1" 'index($0, name) == 1')
    [[ -z $all || $(wc -l <<<"$all") -gt 5 ]] || echo " ($(paste -sd' ' <<<"$all"))"
}
command=("$@")
{
    echo
    echo "limit: $(basename "$1") has not ended after $seconds s. What is left of it:"
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
