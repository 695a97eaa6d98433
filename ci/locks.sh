#!/usr/bin/env bash
# Locks, explored further than `cargo test` does, and the paper's figures from
# the simulator, up to all ranks of the K computer: minutes, 2 GB.
set -euo pipefail
cd "$(dirname "$0")/.."

export RUST_BACKTRACE=0
for name in $(grep -rhoE 'mutant\("[a-z_]+"\)' gas/src/lock | cut -d'"' -f2 | sort -u); do
    if ! grep -rqF "\"$name\"" gas/tests; then
        echo "gas: no test plants the mutant $name" >&2
        exit 1
    fi
done
TSUMUGI_LARGE=1 timeout 1200 \
    cargo test --release --package tsumugi-gas --test lock -- --nocapture
timeout 1200 cargo run --release -- bench lock --only simulated
