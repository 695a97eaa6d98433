#!/usr/bin/env bash
# Defects at random: draws mutants of product files, builds all of them into one
# copy of the tests, and says which no test catches (tests/mutants/src/main.rs).
# `ci/mutants.sh [--sample 300] [--seed 1] [--loom] [--list] [--test-seconds 60]
# [--seconds N] [FILE, FILE:LINE or folder]...` (--list: only prints the draw): a run that ends after so many seconds, or is
# interrupted, goes on when it is started again with the same arguments. In no CI
# step: a sample of 300 takes hours.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --quiet --release --manifest-path tests/mutants/Cargo.toml --target-dir target/mutants/tool
exec target/mutants/tool/release/tsumugi-mutants "$@"
