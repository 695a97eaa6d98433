#!/usr/bin/env bash
# A hundred thousand random programs of messages in the simulator, then ten
# minutes of everything at random, on ULTs and OS threads. Not part of what
# a change must pass. `ci/soak.sh [seconds] [seed]`
set -euo pipefail
cd "$(dirname "$0")/.."
cargo test --release --package tsumugi-core --test sim -- --ignored soak
cargo run --release --package tsumugi-ult --example soak -- "${1:-600}" ${2+"$2"}
