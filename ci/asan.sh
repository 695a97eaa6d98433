#!/usr/bin/env bash
# The tests of ult and pvas under the address sanitizer, in a target folder of
# their own. Stacks of ULTs are known to it: corosensei announces each switch
# (`cfg(tsumugi_asan)` asks for that). ult/tests/asan.rs plants defects that it
# must see. The stable compiler has the sanitizer's runtime, and its switch once
# RUSTC_BOOTSTRAP is set; the standard library is not built anew.
#
#   detect_stack_use_after_return=0  locals stay on the stack that they are of
#   detect_leaks=0                   abandoned ULTs keep what they hold
#   handle_segv=0                    guard pages have a handler already
set -euo pipefail
cd "$(dirname "$0")/.."

host=$(rustc -vV | sed -n 's/^host: //p')
export RUSTC_BOOTSTRAP=1
export RUSTFLAGS="-Zsanitizer=address --cfg tsumugi_asan ${RUSTFLAGS:-}"
# Frames are larger, and stacks are not.
export CARGO_PROFILE_TEST_OPT_LEVEL=1 CARGO_PROFILE_DEV_OPT_LEVEL=1
export RUST_BACKTRACE=0
export ASAN_OPTIONS="detect_stack_use_after_return=0:detect_leaks=0:handle_segv=0"
work=target/asan
mkdir -p "$work"

# --target keeps the flags from what is built for the host.
cargo=(cargo test --package tsumugi-ult --package tsumugi-pvas --target "$host" --target-dir "$work")
"${cargo[@]}" --lib --tests --no-run
timeout 900 "${cargo[@]}" --lib --tests --no-fail-fast 2>&1 | tee "$work/log"
if grep -q "WARNING: ASan" "$work/log"; then
    echo "the sanitizer does not know a stack: its reports cannot be trusted" >&2
    exit 1
fi
if ! grep -q "a_use_after_free_is_caught ... ok" "$work/log"; then
    echo "no planted defect was caught: this check proves nothing" >&2
    exit 1
fi
