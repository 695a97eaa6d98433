#!/usr/bin/env bash
# Checks that take too long for each change. They are run by hand, one at a time:
#
#   ci/long.sh load [TIMES]     runs the tests with processes beside four busy loops, TIMES
#                               times in a row (10)
#   ci/long.sh kills [TIMES]    kills ranks on two and three nodes at random, TIMES times
#                               (200)
#   ci/long.sh pauses           stops ranks of two nodes for some time, over tcp and udp,
#                               beside eight busy loops
#   ci/long.sh cuts             cuts the link between two nodes and joins it again, over
#                               tcp and udp
#   ci/long.sh myth FOLDER      runs MassiveThreads' own tests, from its sources, on libmyth.so.0
#   ci/long.sh mpi4py [N...]    runs mpi4py's tests with libmpi_abi.so.1, and with MPICH beside it
#   ci/long.sh asan             runs simulated jobs, messages and windows under the address
#                               sanitizer
#   ci/long.sh tsan             runs ranks that are threads under the thread sanitizer
#   ci/long.sh mpi_threads      runs random programs of MPI with 64 and 200 threads a rank
set -euo pipefail
self=$(realpath "$0")
cd "$(dirname "$0")/.."

usage() {
    sed -n '2,/^set/{/^#/p}' "$self" >&2
    exit 2
}

load() {
    local times=${1:-10} time
    local tests=(--package tsumugi --test job --test ranks --test window --test lock)
    cargo test "${tests[@]}" --no-run
    cargo test --package tsumugi-pvas --test job --no-run
    for _ in 1 2 3 4; do
        (while :; do :; done) &
        loops+=($!)
    done
    trap 'kill "${loops[@]}" 2>/dev/null; rm -f "$log"' EXIT
    for ((time = 1; time <= times; time++)); do
        local begin=$SECONDS
        cargo test --quiet "${tests[@]}" >"$log" 2>&1 || failed "$time"
        cargo test --quiet --package tsumugi-pvas --test job >"$log" 2>&1 || failed "$time"
        echo "load: run $time of $times passed in $((SECONDS - begin)) s"
    done
}

failed() {
    cat "$log"
    echo "load: run $1 failed" >&2
    exit 1
}

log=$(mktemp)
loops=()
trap 'rm -f "$log"' EXIT
# ci/limit.sh ends a test binary that hangs, as a failure, and names the test.
export CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="$PWD/ci/limit.sh"
case ${1:-} in
load) load "${2:-10}" ;;
kills) ci/kills.sh "${2:-200}" ;;
pauses) ci/netns.sh pauses ;;
cuts) ci/netns.sh cuts ;;
myth) ci/myth.sh "${2:-}" ;;
mpi4py) ci/mpi4py.sh "${@:2}" ;;
asan) ci/asan.sh long ;;
tsan) ci/tsan.sh long ;;
mpi_threads) cargo test --package tsumugi-mpi --test threads -- --ignored ;;
*) usage ;;
esac
