#!/usr/bin/env bash
# Tests of all crates under the address sanitizer, in a target folder of their own:
# the libraries (of core, gas, backends and the facade too), what reads hostile bytes,
# and ranks that are threads. Stacks of ULTs are known to it: corosensei announces each
# switch (`cfg(tsumugi_asan)` asks for that). Each crate plants an overflow that it must
# report (`planted`), and ult/tests/asan.rs defects on stacks. The stable compiler has
# the sanitizer's runtime, and its switch once RUSTC_BOOTSTRAP is set; the standard
# library is not built anew.
#
# `ci/asan.sh long` runs what takes minutes: see `ci/long.sh`.
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
asan() {
    cargo test --target "$host" --target-dir "$work" "$@"
}
run() {
    timeout 900 cargo test --target "$host" --target-dir "$work" --no-fail-fast "$@" 2>&1 |
        tee -a "$work/log"
}
: >"$work/log"
if [ "${1:-}" = long ]; then
    run --package tsumugi-core --package tsumugi-gas --test sim --test page --test lock --test container
    run --package tsumugi --lib --test messages --test window --test comm
else
    asan --package tsumugi-ult --package tsumugi-pvas --lib --tests --no-run
    run --package tsumugi-ult --package tsumugi-pvas --lib --tests
    run --package tsumugi-core --package tsumugi-gas --package tsumugi-backends --lib \
        --test faulty --test hostile --test loopback
    # The simulator of whole jobs takes minutes.
    run --package tsumugi --package tsumugi-capi --lib --test ranks -- --skip start::tests
fi
if grep -q "WARNING: ASan" "$work/log"; then
    echo "the sanitizer does not know a stack: its reports cannot be trusted" >&2
    exit 1
fi
if [ "${1:-}" = long ]; then
    exit
fi
planted=$(grep -c "planted::a_planted_overflow_is_reported ... ok" "$work/log" || true)
if [ "$planted" != 6 ] || ! grep -q "a_use_after_free_is_caught ... ok" "$work/log"; then
    echo "planted defects were caught in $planted of 6 crates: this check proves nothing" >&2
    exit 1
fi
