#!/usr/bin/env bash
# Explores larger programs with locks than `cargo test` does, and prints the figures of the
# lock paper from the simulator, up to all 663,552 ranks of the K computer. Takes minutes
# and 2 GB. Not part of `.ci/run`.
set -euo pipefail
cd "$(dirname "$0")/.."

export RUST_BACKTRACE=0
for name in $(grep -rhoE 'mutant\("[a-z_]+"\)' gas/src/lock | cut -d'"' -f2 | sort -u); do
    if ! grep -rqF "\"$name\"" gas/tests; then
        echo "gas: no test plants the mutant $name" >&2
        exit 1
    fi
done
TSUMUGI_TEST_LARGE=1 timeout 1200 \
    cargo test --release --package tsumugi-gas --test lock -- --nocapture
timeout 1200 cargo run --release -- bench lock --only simulated
