#!/usr/bin/env bash
# Runs the fuzz targets of `fuzz/`, two at a time, each from its stored corpus: libFuzzer
# with the address sanitizer and overflow checks.
#
#   ci/fuzz.sh [SECONDS [TARGET]...]     10 seconds and all targets if not given
#
# New inputs that reach new code stay in target/fuzz/found, inputs that break a target in
# target/fuzz/broken. cargo-fuzz is not needed: the stable compiler accepts the switches
# below if RUSTC_BOOTSTRAP is set.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-10}
host=$(rustc -vV | sed -n 's/^host: //p')
work=$PWD/target/fuzz
declare -A corpora=(
    [card]=backends/tests/corpus/card
    [frame]=backends/tests/corpus/frame
    [heads]=backends/tests/corpus/heads
    [packets]=runtime/tests/corpus/packets
    [parcels]=core/tests/corpus/parcels
    [pmi]=backends/tests/corpus/pmi
    [variables]=backends/tests/corpus/variables
)
for target in fuzz/fuzz_targets/*.rs; do
    target=$(basename "$target" .rs)
    [[ -d ${corpora[$target]:-} ]] || { echo "fuzz: $target has no corpus" >&2; exit 1; }
done
targets=("${@:2}")
((${#targets[@]})) || mapfile -t targets < <(printf '%s\n' "${!corpora[@]}" | sort)

# The instrumentation for libFuzzer: edges of the control flow, and operands of compares.
flags="--cfg fuzzing -Zsanitizer=address -Cdebug-assertions -Coverflow-checks"
flags+=" -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4"
for part in inline-8bit-counters pc-table trace-compares; do
    flags+=" -Cllvm-args=-sanitizer-coverage-$part"
done
# With --target the flags do not apply to build scripts and procedural macros.
RUSTC_BOOTSTRAP=1 RUSTFLAGS=$flags cargo build --quiet --release --target "$host" \
    --manifest-path fuzz/Cargo.toml --target-dir "$work"

# libFuzzer writes new inputs to the first folder, so the stored corpus comes second.
fuzz() {
    local target=$1
    mkdir -p "$work/found/$target" "$work/broken"
    "$work/$host/release/$target" "$work/found/$target" "${corpora[$target]}" \
        -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -verbosity=1 \
        -print_final_stats=1 -artifact_prefix="$work/broken/$target-" >"$work/$target.log" 2>&1 ||
        { tail -40 "$work/$target.log"; echo "fuzz: $target failed" >&2; return 1; }
    echo "fuzz: $target: $(sed -n 's/^stat::number_of_executed_units: *//p' "$work/$target.log") inputs"
}
failed=0
running=()
for target in "${targets[@]}"; do
    if ((${#running[@]} == 2)); then
        wait "${running[0]}" || failed=1
        running=("${running[1]}")
    fi
    fuzz "$target" &
    running+=($!)
done
for pid in "${running[@]}"; do
    wait "$pid" || failed=1
done
exit $failed
