#!/usr/bin/env bash
# Runs the commands of the README as a new user types them, and some of the examples.
set -euo pipefail
cd "$(dirname "$0")/.."
grep -q '^cargo run --release -- demo$' README.md
grep -q '^cargo test$' README.md
cargo run --release -- demo | tee target/demo.txt
grep -q 'agrees with a serial search' target/demo.txt
cargo build --release --example hello
cargo run --release -- run -n 3 target/release/examples/hello
# Unoptimized builds, which other steps share: thin LTO of each example takes long. The
# tests run the other programs on arrays.
cargo build --quiet --package tsumugi --package tsumugi-cli --examples --bins
for example in put_get global gups stencil bfs boxes pool uts; do
    target/debug/tsumugi run -n 2 "target/debug/examples/$example"
done
