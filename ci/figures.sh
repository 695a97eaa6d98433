#!/usr/bin/env bash
# The figures of the papers, measured here, as one report (`tsumugi bench figures`).
#
#   ci/figures.sh [ARGUMENTS]    beside the peers that ci/peers.sh can install; the arguments
#                                are those of the command, such as --paper S1 --quick
#   ci/figures.sh points         one point of each line, without peers, in target/figures: fails
#                                if a figure that has a command makes no row
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --quiet --release --bin tsumugi
tsumugi=${CARGO_TARGET_DIR:-target}/release/tsumugi

# The rows of a figure between two cores are left out if the cores moved meanwhile, so a second
# and a third try measure what is missing.
points() {
    rm -rf target/figures
    for _ in 1 2 3; do
        timeout 60 "$tsumugi" bench figures --quick --ops 1 --folder target/figures && return
    done
    echo "figures: a figure has no row" >&2
    return 1
}

# peers OPTION WORKLOAD: adds the peers with this workload to the arguments.
peers() {
    local name command
    while read -r name command; do
        arguments+=("$1" "$name=$command")
    done < <(ci/peers.sh "$2")
}

if [[ "$*" == points ]]; then
    points
    exit
fi
arguments=()
peers --peer message
peers --lock-peer lock
"$tsumugi" bench figures "${arguments[@]}" "$@"
