#!/usr/bin/env bash
# Runs 20,000 new seeds of each simulator test, then a random mixture of operations of
# ULTs and OS threads for SECONDS seconds, then long jobs with global memory and messages.
# Not part of `.ci/run`.
#
#   ci/soak.sh [SECONDS [SEED]]     600 seconds if not given
set -euo pipefail
cd "$(dirname "$0")/.."
ci/seeds.sh 20000
cargo run --release --package tsumugi-ult --example soak -- "${1:-600}" ${2+"$2"}
# Random accesses to global memory, while arrays are made and dropped.
for job in 'direct 4' 'offload 3' 'delegate 2'; do
    TSUMUGI_PATH=${job% *} cargo test --release --package tsumugi --test job -- --launch "${job#* }" churn-long
done
# Random messages between four processes, with each design.
for design in mirror locked two_copy; do
    TSUMUGI_MESSAGES=$design cargo test --release --package tsumugi --test job -- --launch 4 mixture-long
done
