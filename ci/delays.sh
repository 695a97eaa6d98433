#!/usr/bin/env bash
# Runs the tests in a build in which accesses to atomics are delayed now and then
# (core/src/sync/delayed.rs), in the target folder target/delays. The arguments go to
# `cargo test`: `ci/delays.sh -p tsumugi --test job`. TSUMUGI_TEST_DELAY_ONE_IN=N, at build
# time, delays one access in N (2048 if unset).
#
# Not part of `.ci/run`: all tests take about an hour. It finds orders of steps that occur
# about once in a thousand ordinary runs.
set -euo pipefail
cd "$(dirname "$0")/.."

# With --target the flags do not apply to build scripts and procedural macros.
host=$(rustc -vV | sed -n 's/^host: //p')
export RUSTFLAGS="--cfg tsumugi_delays ${RUSTFLAGS:-}"
cargo test --no-fail-fast --target "$host" --target-dir target/delays "$@"
