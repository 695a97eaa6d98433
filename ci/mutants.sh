#!/usr/bin/env bash
# Draws random mutants of product files, builds all of them into one copy of the tests, and
# lists those that no test catches (tests/mutants/src/main.rs). Not part of `.ci/run`: a
# sample of 300 takes 15 minutes on two cores.
#
#   ci/mutants.sh [OPTION]... [FILE | FILE:LINE | FOLDER]...
#
#   --sample 300        how many mutants are drawn
#   --seed 1            the seed of the draw
#   --loom              runs the model checks too, and draws memory orderings
#   --list              prints the mutants that are drawn, and runs nothing
#   --test-seconds 60   leaves out tests that take longer than this without a mutant
#   --seconds N         starts no test after N seconds
#
# A run that ended after N seconds, or was interrupted, continues when it is started again
# with the same arguments. ci/mutants.equivalent has mutants that change no behaviour.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --quiet --release --manifest-path tests/mutants/Cargo.toml --target-dir target/mutants/tool
exec target/mutants/tool/release/tsumugi-mutants "$@"
