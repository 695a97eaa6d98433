#!/usr/bin/env bash
# Runs programs of core and ult that are too large for loom in random schedules, under
# shuttle, in the target folder target/shuttle.
set -euo pipefail
cd "$(dirname "$0")/.."

export RUSTFLAGS="--cfg tsumugi_loom --cfg tsumugi_shuttle -D warnings ${RUSTFLAGS:-}"
export RUST_BACKTRACE=0
cargo=(cargo test --release --target-dir target/shuttle
    --package tsumugi-core --package tsumugi-ult --test shuttle)
"${cargo[@]}" --no-run
timeout 900 "${cargo[@]}"
