#!/usr/bin/env bash
# New seeds for everything that is simulated. `ci/seeds.sh COUNT [FILTER]` runs
# COUNT seeds of every plan (a test that asks `sim::check` for seeds) whose name
# contains FILTER, in a release build, as many plans at a time as there are
# processors. Each plan goes on where it stopped the last time, also when that was
# in the middle: `target/seeds` has a line for each, which begins where the commit
# says. A seed that fails is printed with the command that replays it, the others
# go on, and the end is an error. Not part of what a change must pass.
set -euo pipefail
self=$(realpath "$0")
cd "$(dirname "$0")/.."
filter=${2-}
state=$PWD/target/seeds
part=1000

# Seeds of one plan, in parts: `plan COUNT BINARY DIRECTORY NAME`.
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

# What of a binary's tests is a plan: what asks for seeds when it is given none.
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

count=${1:?how many seeds of each plan}
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
