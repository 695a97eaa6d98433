#!/usr/bin/env bash
# New seeds of all that is simulated, then ten minutes of everything at random,
# on ULTs and OS threads. Not part of what a change must pass.
# `ci/soak.sh [seconds] [seed]`
set -euo pipefail
cd "$(dirname "$0")/.."
ci/seeds.sh 20000
cargo run --release --package tsumugi-ult --example soak -- "${1:-600}" ${2+"$2"}
# Global memory at random, while arrays come and go.
for job in 'direct 4' 'offload 3' 'delegate 2'; do
    TSUMUGI_PATH=${job% *} cargo test --release --package tsumugi --test job -- --launch "${job#* }" churn-long
done
# Messages at random between four processes, by each design.
for design in mirror locked two_copy; do
    TSUMUGI_MESSAGES=$design cargo test --release --package tsumugi --test job -- --launch 4 mixture-long
done
