#!/usr/bin/env bash
# A million operations cost no system call, whoever carries them out (the
# caller, whoever holds the endpoint, a communication thread): the measuring
# rank of the bench runs under strace, with a million operations of each row and
# with two million. No count may grow but those of threads that found nothing to
# do: sched_yield and futex, and the membarrier before a sleep. That they
# allocate nothing either is in tests/no_alloc.rs.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v strace >/dev/null; then
    apt-get update -qq && apt-get install -y -qq strace ||
        { echo "ci/syscalls.sh needs strace, and could not install it" >&2; exit 1; }
fi
if ! strace -o /dev/null true 2>/dev/null; then
    echo "ci/syscalls.sh may not trace processes here (ptrace)" >&2
    exit 1
fi
cargo build --release --package tsumugi-cli
work=$PWD/target/syscalls
mkdir -p "$work"

# What rank 0 calls, by name, with so many operations of each row of a group.
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

compare() {
    local group=$1
    trace "$group" 1000000 && trace "$group" 2000000 || return
    # Up to eight rows: one call in 4,096 operations would be 1,952 more.
    # Starting threads and asking for memory varies by a handful from run to run.
    awk -v noise=32 -v group="$group" '
        NR == FNR { before[$1] = $2; next }
        { seen[$1] = 1; grown = $2 - before[$1] }
        grown > noise && $1 != "sched_yield" && $1 != "futex" && $1 != "membarrier" {
            printf "%s: %s: %d calls, %d with another million operations\n", group, $1, before[$1], $2
            failed = 1
        }
        END {
            if (failed) exit 1
            printf "%s: a million operations more of each row: no system call more\n", group
        }
    ' "$work/$group.1000000.counts" "$work/$group.2000000.counts"
}

# What operations cost is there each time; what a thread costs that was kept from
# its core is not.
for group in direct delegate offload requesters; do
    compare "$group" || compare "$group" || compare "$group"
done
