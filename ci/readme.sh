#!/usr/bin/env bash
# Runs the commands of the README as a new user types them, and some of the examples.
set -euo pipefail
cd "$(dirname "$0")/.."
# Each of these stands in the README, as a line of its own.
for line in 'cargo run --release -- demo' 'cargo test' \
    '$ cargo build --release --example hello' \
    '$ cargo run --release -- run -n 3 target/release/examples/hello' \
    'cargo install --locked --path ../tsumugi/cli' 'cargo build' \
    'tsumugi run -n 4 target/debug/NAME'; do
    grep -qxF -- "$line" README.md || { echo "the README has no line: $line" >&2; exit 1; }
done
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

# A package of its own, with the README's dependency and program. It builds into the same
# folder, where most of it is there already.
here=$PWD
target=$(realpath "${CARGO_TARGET_DIR:-target}")
export CARGO_TARGET_DIR=$target
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/newcomer/src"
block() {
    sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/{/^\`\`\`/d;p}" README.md
}
{
    printf '[package]\nname = "newcomer"\nversion = "0.1.0"\nedition = "2024"\n\n'
    block toml | sed "s|\.\./tsumugi|$here|"
} >"$work/newcomer/Cargo.toml"
block rust >"$work/newcomer/src/main.rs"
# The versions that are here already.
cp Cargo.lock "$work/newcomer"
cd "$work/newcomer"
cargo install --locked --quiet --path "$here/cli" --root "$work"
cargo build --quiet
"$work/bin/tsumugi" run -n 4 "$target/debug/newcomer" | tee "$work/said"
[[ $(grep -c '^rank [0-3] of 4 drew number [0-3]$' "$work/said") == 4 ]]
cargo run --quiet >"$work/said"
grep -qx 'rank 0 of 1 drew number 0' "$work/said"
