#!/usr/bin/env bash
# Checks that operations make no system calls, with each executor: the caller, the holder of
# the delegate, a communication thread. The measuring rank of `tsumugi bench rma` runs under
# strace, with one million operations of each row and with two million. The second million
# may not add system calls, except those of threads that found nothing to do: sched_yield,
# futex, and the membarrier before a sleep. Installs strace if it is missing.
# tests/no_alloc.rs checks that operations allocate nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v strace >/dev/null; then
    apt-get update -qq && apt-get install -y -qq strace ||
        { echo "syscalls: strace is missing and cannot be installed" >&2; exit 1; }
fi
if ! strace -o /dev/null true 2>/dev/null; then
    echo "syscalls: this user may not trace processes here (ptrace)" >&2
    exit 1
fi
cargo build --release --bin tsumugi
work=$PWD/target/syscalls
mkdir -p "$work"

# trace GROUP OPS: writes the system calls of rank 0, a name and a count in each line, with
# OPS operations of each row of the group.
trace() {
    local group=$1 ops=$2 out=$work/$1.$2
    rm -f "$out"
    target/release/tsumugi run -n 3 -- sh -c '
        if [ "$TSUMUGI_RANK" = 0 ]; then
            exec strace -f -c -o "$1" "$2" bench rma --only "$3" --ops "$4"
        fi
        exec "$2" bench rma --only "$3" --ops "$4"
    ' sh "$out" target/release/tsumugi "$group" "$ops" || return
    # The columns are: %, seconds, usecs/call, calls, errors (or none), name.
    awk '$4 ~ /^[0-9]+$/ && $NF != "total" { print $NF, $4 }' "$out" | sort >"$out.counts"
    test -s "$out.counts"
}

# compare GROUP: fails if the second million of operations adds system calls.
compare() {
    local group=$1
    trace "$group" 1000000 && trace "$group" 2000000 || return
    # A group has up to eight rows: one call in 4,096 operations would add 1,952.
    # The calls that start threads and map memory vary by a few from run to run.
    awk -v noise=32 -v group="$group" '
        NR == FNR { before[$1] = $2; next }
        { seen[$1] = 1; grown = $2 - before[$1] }
        grown > noise && $1 != "sched_yield" && $1 != "futex" && $1 != "membarrier" {
            printf "%s: %s: %d calls, %d with another million operations\n", group, $1, before[$1], $2
            failed = 1
        }
        END {
            if (failed) exit 1
            printf "%s: another million operations of each row adds no system call\n", group
        }
    ' "$work/$group.1000000.counts" "$work/$group.2000000.counts"
}

# A system call of the operations shows in each of three tries; one of a thread that was
# off its core does not.
for group in direct delegate offload requesters; do
    compare "$group" || compare "$group" || compare "$group"
done
