#!/usr/bin/env bash
# Runs tests under the thread sanitizer, in the target folder target/tsan: unit tests and
# two integration tests of ult, the unit tests of core, gas, pvas and backends, and some of
# the facade.
#
# With `cfg(tsumugi_tsan)` each switch of a ULT is announced to the sanitizer
# (ult/src/stack/switch/fiber.rs), and fences have a form that it understands
# (core/src/sync/seen.rs). The standard library is not rebuilt: ci/tsan_std.c announces
# synchronization in it that the sanitizer does not see, and ci/tsan.supp suppresses the
# reports that remain. The measurements of pvas between two cores (`calibrate`) run without
# reports, because the end of a scoped thread that returns nothing is compiled into the
# standard library. Partitions, heaps and ranks lie in the address range that the sanitizer
# leaves free (`config::BASE_TSAN`).
#
# Each of the six crates plants a race that the sanitizer must report (`planted`).
#
# `ci/tsan.sh long` runs all tests of ranks that are threads: see `ci/long.sh`.
#
# The stable compiler has the sanitizer's runtime, and accepts `-Zsanitizer` if
# RUSTC_BOOTSTRAP is set.
set -euo pipefail
cd "$(dirname "$0")/.."

host=$(rustc -vV | sed -n 's/^host: //p')
work=target/tsan
mkdir -p "$work"

# wrap NAME PATTERN: has the linker replace the function of the standard library with a symbol
# that ends in PATTERN by the one of tsan_std.c, which gets the symbol as the macro NAME.
library=$(rustc --print target-libdir)
symbols=$(nm -D --defined-only "$library"/libstd-*.so | awk '{ print $3 }')
names=() wraps=()
wrap() {
    local symbol
    symbol=$(grep -E "$2\$" <<<"$symbols") ||
        { echo "tsan: this compiler's std has no function $2" >&2; exit 1; }
    names+=("-D$1=\"$symbol\"")
    wraps+=("-Clink-arg=-Wl,--wrap=$symbol")
}
wrap MUTEX '5mutex5futex[A-Za-z0-9_]*14lock_contended'
wrap READ '6rwlock5futex[A-Za-z0-9_]*14read_contended'
wrap WRITE '6rwlock5futex[A-Za-z0-9_]*15write_contended'
wrap WAIT '7condvar5futex[A-Za-z0-9_]*7Condvar4wait'
wrap WAIT_TIMEOUT '7condvar5futex[A-Za-z0-9_]*12wait_timeout'
wrap ONCE '4once5futex[A-Za-z0-9_]*4Once4call'
wrap DECREMENT '6scoped[A-Za-z0-9_]*29decrement_num_running_threads'
for name in atomic64_fetch_sub atomic_thread_fence; do
    wraps+=("-Clink-arg=-Wl,--wrap=__tsan_$name")
done
cc -O2 -c "${names[@]}" ci/tsan_std.c -o "$work/std.o"

export RUSTC_BOOTSTRAP=1
export RUSTFLAGS="-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer --cfg tsumugi_tsan
    -Clink-arg=$PWD/$work/std.o ${wraps[*]} ${RUSTFLAGS:-}"
RUSTFLAGS=$(tr -s '[:space:]' ' ' <<<"$RUSTFLAGS")
# mimalloc is built for the sanitizer, too.
export "CFLAGS_${host//-/_}=-fsanitize=thread -DMI_TSAN=1"
export RUST_BACKTRACE=0

# With --target the flags do not apply to build scripts and procedural macros.
cargo=(cargo test --target "$host" --target-dir "$work")
# Optimized code takes longer to build than it saves in the selection that runs here.
[[ ${1:-} == long ]] || cargo+=(--config profile.dev.package.tsumugi-core.opt-level=0
    --config profile.dev.package.tsumugi-gas.opt-level=0)
ult=("${cargo[@]}" --package tsumugi-ult --lib --test spawn_join --test conserving)
pvas=("${cargo[@]}" --package tsumugi-pvas --lib)
ranks=("${cargo[@]}" --package tsumugi --test ranks)
reports="suppressions=$PWD/ci/tsan.supp"
if [ "${1:-}" = long ]; then
    # To build optimized code takes longer than the other tests take without it.
    export CARGO_PROFILE_TEST_OPT_LEVEL=1 CARGO_PROFILE_DEV_OPT_LEVEL=1
    # The free address range has room for partitions of one shape: tests with another shape
    # run in a process of their own.
    others=(memory_of_dropped_arrays_is_used_again sums_of_floats_are_the_same_on_all_ranks)
    export TSAN_OPTIONS=$reports
    timeout 900 "${ranks[@]}" -- --test-threads=1 "${others[@]/#/--skip=}"
    for other in "${others[@]}"; do
        timeout 300 "${ranks[@]}" -- --exact "$other"
    done
    exit
fi
parts=("${cargo[@]}" --package tsumugi-core --package tsumugi-gas --lib)
backends=("${cargo[@]}" --package tsumugi-backends --lib)
runtime=("${cargo[@]}" --package tsumugi-runtime --lib)
facade=("${cargo[@]}" --package tsumugi --lib)
# One build of all, but for runtime, whose tests have other features without the facade.
"${cargo[@]}" --no-run --package tsumugi-ult --package tsumugi-core --package tsumugi-gas \
    --package tsumugi-pvas --package tsumugi-backends --package tsumugi \
    --lib --test spawn_join --test conserving
"${runtime[@]}" --no-run
: >"$work/log"
TSAN_OPTIONS=$reports timeout 300 "${ult[@]}" 2>&1 | tee -a "$work/log"
TSAN_OPTIONS=$reports timeout 300 "${parts[@]}" 2>&1 | tee -a "$work/log"
# The skipped test requests an address range that the sanitizer uses itself.
taken=a_base_that_is_taken_is_an_error_that_names_it
TSAN_OPTIONS=$reports timeout 600 "${pvas[@]}" -- --skip "$taken" --skip calibrate 2>&1 |
    tee -a "$work/log"
TSAN_OPTIONS=report_bugs=0 timeout 300 "${pvas[@]}" calibrate
# The skipped test, a client of libfabric, takes a minute, and libfabric is not built for
# the sanitizer.
TSAN_OPTIONS=$reports timeout 300 "${backends[@]}" -- --skip stranger 2>&1 | tee -a "$work/log"
TSAN_OPTIONS=$reports timeout 300 "${runtime[@]}" -- planted net::registration net::emulation 2>&1 |
    tee -a "$work/log"
TSAN_OPTIONS=$reports timeout 600 "${facade[@]}" -- planted array:: 2>&1 | tee -a "$work/log"
planted=$(grep -c "planted::a_planted_race_is_reported ... ok" "$work/log" || true)
if [ "$planted" != 7 ]; then
    echo "tsan: planted races were reported in $planted of 7 crates: this check proves nothing" >&2
    exit 1
fi
