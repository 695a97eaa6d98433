#!/usr/bin/env bash
# Runs the commands of the README as a new user types them, and some of the examples.
set -euo pipefail
cd "$(dirname "$0")/.."
# The stripped size of the example hello was 2,710,808 bytes when this limit was set.
HELLO_BYTES_MAX=2800000
# Each of these stands in the README, as a line of its own.
for line in 'cargo run --release -- demo' 'cargo test' \
    '$ cargo build --release --example hello' \
    '$ cargo run --release -- run -n 3 target/release/examples/hello'; do
    grep -qxF -- "$line" README.md || { echo "the README has no line: $line" >&2; exit 1; }
done
cargo run --release -- demo | tee target/demo.txt
grep -q 'agrees with a serial search' target/demo.txt
cargo build --release --example hello
cargo run --release -- run -n 3 target/release/examples/hello
# What a program carries: docs/measuring.md says how to find what has made it larger.
strip -s -o target/hello.stripped target/release/examples/hello
bytes=$(stat -c %s target/hello.stripped)
if ((bytes > HELLO_BYTES_MAX)); then
    echo "readme: the example hello has $bytes bytes, more than $HELLO_BYTES_MAX" >&2
    exit 1
fi
# Unoptimized builds, with the features that all packages together have, as in `cargo test`:
# other steps share them, and thin LTO of each example takes long. The tests run the other
# programs on arrays.
cargo build --quiet --examples --bins
for example in put_get global gups stencil bfs boxes pool uts; do
    target/debug/tsumugi run -n 2 "target/debug/examples/$example"
done
