#!/usr/bin/env bash
# Runs new seeds of the simulator tests of core and gas, in a release build.
#
#   ci/seeds.sh COUNT [FILTER]
#
# A plan is a test that takes its seeds from `sim::check`. Runs COUNT seeds of each plan with
# a name that contains FILTER, as many plans at a time as there are processors. Each plan
# starts at a seed that the commit's hash gives, and later continues where it stopped, also
# if it was interrupted: its position is in a file of target/seeds. A seed that fails is
# printed with the command that replays it; the plan continues with the next seed, and the
# script fails at its end. Not part of `.ci/run`.
set -euo pipefail
self=$(realpath "$0")
cd "$(dirname "$0")/.."
filter=${2-}
state=$PWD/target/seeds
part=1000

# plan COUNT BINARY DIRECTORY NAME: runs seeds of one plan, 1000 at a time.
plan() {
    local count=$1 binary=$2 directory=$3 name=$4 place first end next failed=0
    place=$(basename "$binary") place=$state/$(basename "$directory").${place%-*}.${name//::/.}
    [ -s "$place" ] || printf '%d\n' "$base" >"$place"
    first=$(<"$place") end=$((first + count))
    local at=$first
    cd "$directory"
    while [ "$at" -lt "$end" ]; do
        next=$((at + part < end ? at + part : end))
        if TSUMUGI_SEEDS=$at..$next "$binary" --exact "$name" >"$place.log" 2>&1; then
            at=$next
        else
            failed=$((failed + 1))
            seed=$(sed -n 's/.*replay with TSUMUGI_SEED=\(0x[0-9a-f]*\)$/\1/p' "$place.log" | head -n 1)
            [ -n "$seed" ] || { cat "$place.log"; return 1; }
            cp "$place.log" "$place.$seed.log"
            printf 'FAILED  TSUMUGI_SEED=%s cargo test --release --package tsumugi-%s %s  (%s)\n' \
                "$seed" "$(basename "$directory")" "$name" "$place.$seed.log"
            at=$((seed + 1))
        fi
        echo "$at" >"$place"
    done
    printf '%-6s  %-70s %#x..%#x  %d failed  %d s\n' "$(basename "$directory")" "$name" \
        "$first" "$at" "$failed" "$SECONDS"
    [ "$failed" -eq 0 ]
}

# plans BINARY DIRECTORY: prints the plans of a binary: the tests that print a range of seeds
# when the range is empty.
plans() (
    binary=$1
    cd "$2"
    "$binary" --list --format terse | sed -n 's/: test$//p' | while read -r name; do
        [[ $name == *"$filter"* ]] || continue
        told=$(TSUMUGI_SEEDS=0..0 "$binary" --exact "$name" --nocapture 2>&1 </dev/null || true)
        [[ $told == *TSUMUGI_SEEDS=0x0..0x0* ]] && echo "$binary $PWD $name"
    done || true
)

if [ "${1-}" = --plan ]; then
    shift
    plan "$@"
    exit
fi

count=${1:?the number of seeds of each plan is missing}
mkdir -p "$state"
hash=$(git rev-parse HEAD)
export base=$((${TSUMUGI_SEED_BASE:-0x${hash:0:8} << 20}))
unset TSUMUGI_SEED TSUMUGI_SEEDS
built() {
    cargo test --release --no-run --message-format=json --package "tsumugi-$1" "${@:2}" |
        sed -n 's/.*"test":true.*"executable":"\([^"]*\)".*/\1/p'
}
of_core=$(built core --test sim --test faulty)
of_gas=$(built gas --test sim --test page --test lock)
list=$(
    for binary in $of_core; do plans "$binary" "$PWD/core"; done
    for binary in $of_gas; do plans "$binary" "$PWD/gas"; done
)
echo "$(wc -l <<<"$list") plans, $count seeds of each; logs and positions are in $state"
xargs -P "$(nproc)" -n 3 "$self" --plan "$count" <<<"$list"
