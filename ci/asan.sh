#!/usr/bin/env bash
# Runs tests of all library crates under the address sanitizer, in the target folder
# target/asan: all tests of ult and pvas; the unit tests of core, gas, backends and the
# facade; the tests that parse hostile bytes; and ranks that are threads.
#
# The sanitizer knows the stacks of ULTs: with `cfg(tsumugi_asan)` corosensei announces
# each switch to it. Each of the six crates plants an overflow that the sanitizer must
# report (`planted`), and ult/tests/asan.rs plants defects on the stacks of ULTs.
#
# The stable compiler has the sanitizer's runtime, and accepts `-Zsanitizer` if
# RUSTC_BOOTSTRAP is set. The standard library is not rebuilt.
#
# `ci/asan.sh long` runs the tests that take minutes: see `ci/long.sh`.
#
#   detect_stack_use_after_return=0  locals stay on the stack of their ULT
#   detect_leaks=0                   a ULT that is cut off keeps its memory
#   handle_segv=0                    the runtime has its own handler, for guard pages
set -euo pipefail
cd "$(dirname "$0")/.."

host=$(rustc -vV | sed -n 's/^host: //p')
export RUSTC_BOOTSTRAP=1
export RUSTFLAGS="-Zsanitizer=address --cfg tsumugi_asan ${RUSTFLAGS:-}"
export RUST_BACKTRACE=0
export ASAN_OPTIONS="detect_stack_use_after_return=0:detect_leaks=0:handle_segv=0"
work=target/asan
mkdir -p "$work"

# With --target the flags do not apply to build scripts and procedural macros. Optimized code
# takes longer to build than it saves in the selection that runs here, except in runtime, whose
# unit tests simulate hours of silence.
cargo=(cargo test --target "$host" --target-dir "$work" --no-fail-fast
    --config profile.dev.package.tsumugi-runtime.opt-level=1)
run() {
    timeout 900 "${cargo[@]}" "$@" 2>&1 | tee -a "$work/log"
}
: >"$work/log"
if [ "${1:-}" = long ]; then
    # To build optimized code takes longer than the other tests take without it.
    export CARGO_PROFILE_TEST_OPT_LEVEL=1 CARGO_PROFILE_DEV_OPT_LEVEL=1
    run --package tsumugi-core --package tsumugi-gas --test sim --test page --test lock --test container
    run --package tsumugi --lib --test messages --test window --test comm
else
    cargo+=(--config profile.dev.package.tsumugi-core.opt-level=0
        --config profile.dev.package.tsumugi-gas.opt-level=0)
    "${cargo[@]}" --package tsumugi-ult --package tsumugi-pvas --lib --tests --no-run
    run --package tsumugi-ult --package tsumugi-pvas --lib --tests
    run --package tsumugi-core --package tsumugi-gas --package tsumugi-backends --lib \
        --test faulty --test hostile --test loopback
    # The tests that simulate whole jobs take minutes.
    run --package tsumugi --package tsumugi-runtime --package tsumugi-capi --lib --test ranks -- \
        --skip tests::nodes
fi
if grep -q "WARNING: ASan" "$work/log"; then
    echo "asan: the sanitizer met a stack that it does not know: its reports are unreliable" >&2
    exit 1
fi
if [ "${1:-}" = long ]; then
    exit
fi
planted=$(grep -c "planted::a_planted_overflow_is_reported ... ok" "$work/log" || true)
if [ "$planted" != 7 ] || ! grep -q "a_use_after_free_is_caught ... ok" "$work/log"; then
    echo "asan: not all planted defects were reported (overflows: $planted of 7):" \
        "this check proves nothing" >&2
    exit 1
fi
