#!/usr/bin/env bash
# Checks formatting, clippy's lints and rustdoc; a warning is an error.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo fmt --all --check
cargo clippy --workspace --all-targets -- -D warnings
cargo clippy --package tsumugi-ult --no-default-features -- -D warnings
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet \
    --features tsumugi/bytemuck
