#!/usr/bin/env bash
# The tests with delays between the steps of all lock-free code
# (core/src/sync/delayed.rs), in a target folder of their own; what follows goes
# to cargo: `ci/delays.sh -p tsumugi --test job`. Not part of `.ci/run`: it takes
# about an hour, and finds what comes once in a thousand ordinary runs.
set -euo pipefail
cd "$(dirname "$0")/.."

# --target keeps the flags from what is built for the host.
host=$(rustc -vV | sed -n 's/^host: //p')
export RUSTFLAGS="--cfg tsumugi_delays ${RUSTFLAGS:-}"
cargo test --no-fail-fast --target "$host" --target-dir target/delays "$@"
