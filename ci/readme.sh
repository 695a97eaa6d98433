#!/usr/bin/env bash
# The README's commands, as a newcomer types them.
set -euo pipefail
cd "$(dirname "$0")/.."
grep -q '^cargo run --release -- demo$' README.md
grep -q '^cargo test$' README.md
cargo run --release -- demo | tee target/demo.txt
grep -q 'agrees with a serial search' target/demo.txt
# Each is optimised as a whole, which takes long: the other programs on arrays
# are run by the tests.
examples=(hello put_get global gups stencil bfs boxes pool uts)
cargo build --release "${examples[@]/#/--example=}"
for example in "${examples[@]}"; do
    cargo run --release --quiet -- run -n 2 "target/release/examples/$example"
done
