#!/usr/bin/env bash
# The tests of pvas under the thread sanitizer, in a target folder of their own:
# that partitions, heaps and ranks come to be where it leaves room for them
# (`config::BASE_TSAN`) and do what they do elsewhere. It reports no races: the
# standard library is not built anew, so it does not see that a thread was joined
# or an `Arc` given up, and takes what follows for a race. The orderings are
# proved by loom (ci/loom.sh). The stable compiler has the sanitizer's runtime,
# and its switch once RUSTC_BOOTSTRAP is set.
set -euo pipefail
cd "$(dirname "$0")/.."

host=$(rustc -vV | sed -n 's/^host: //p')
export RUSTC_BOOTSTRAP=1
export RUSTFLAGS="-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer ${RUSTFLAGS:-}"
export CARGO_PROFILE_TEST_OPT_LEVEL=1 CARGO_PROFILE_DEV_OPT_LEVEL=1
export RUST_BACKTRACE=0
export TSAN_OPTIONS="report_bugs=0"

# --target keeps the flags from what is built for the host.
cargo=(cargo test --package tsumugi-pvas --target "$host" --target-dir target/tsan --lib)
"${cargo[@]}" --no-run
# The test that is left out asks for a base that the sanitizer has for itself.
timeout 900 "${cargo[@]}" -- --skip a_base_that_is_taken_is_an_error_that_names_it
