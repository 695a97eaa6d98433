#!/usr/bin/env bash
# The README's commands, as a newcomer types them.
set -euo pipefail
cd "$(dirname "$0")/.."
grep -q '^cargo run --release -- demo$' README.md
grep -q '^cargo test$' README.md
cargo run --release -- demo | tee target/demo.txt
grep -q 'agrees with a serial search' target/demo.txt
cargo build --release --example hello
cargo run --release -- run -n 3 target/release/examples/hello
# Each is optimised as a whole, which takes long, so these are what other steps build,
# too; the other programs on arrays are run by the tests.
cargo build --quiet --package tsumugi --package tsumugi-cli --examples --bins
for example in put_get global gups stencil bfs boxes pool uts; do
    target/debug/tsumugi run -n 2 "target/debug/examples/$example"
done
