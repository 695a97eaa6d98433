#!/usr/bin/env bash
# The README's commands, as a newcomer types them.
set -euo pipefail
cd "$(dirname "$0")/.."
grep -q '^cargo run --release -- demo$' README.md
grep -q '^cargo test$' README.md
cargo run --release -- demo | tee target/demo.txt
grep -q 'agrees with a serial search' target/demo.txt
cargo build --release --examples
for example in hello put_get global gups stencil bfs boxes pool queens mesh search sort uts; do
    cargo run --release --quiet -- run -n 2 target/release/examples/$example
done
