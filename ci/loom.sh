#!/usr/bin/env bash
# Model checks: every execution that loom finds within its preemption bound,
# as the code is and with one defect planted at a time. Eight minutes at most for
# all, not counting the builds, which have a target folder of their own.
set -euo pipefail
cd "$(dirname "$0")/.."

left=480
export RUSTFLAGS="--cfg tsumugi_loom -D warnings ${RUSTFLAGS:-}"
export RUST_BACKTRACE=0
# No model is slow because of what it prints.
export LOOM_LOG=0

check() {
    local package=$1 preemptions=$2
    shift 2
    local cargo=(cargo test --release --target-dir target/loom --package "$package" --test loom)
    "${cargo[@]}" --no-run
    # No limit at all is what 0 would be.
    ((left > 0)) || { echo "no time is left for the models of $package" >&2; return 1; }
    local begin=$SECONDS
    LOOM_MAX_PREEMPTIONS="${LOOM_MAX_PREEMPTIONS:-$preemptions}" \
        timeout "$left" "${cargo[@]}" -- --nocapture
    left=$((left - (SECONDS - begin)))
}

# A defect that no test plants proves nothing.
planted() {
    local folder=$1 name missing=0
    for name in $(grep -rhoE '\b(mutant|edge|order|less)\("[a-z_]+"[,)]' "$folder/src" | cut -d'"' -f2 | sort -u); do
        if ! grep -rqF "\"$name\"" "$folder/tests" &&
            ! grep -rqF "with_mutant(\"$name\"" "$folder/src"; then
            echo "$folder: no test plants the mutant $name" >&2
            missing=1
        fi
    done
    return "$missing"
}

planted core
check tsumugi-core 4
if [[ -e ult/tests/loom.rs || -d ult/tests/loom ]]; then
    planted ult
    check tsumugi-ult 2
fi
planted gas
check tsumugi-gas 3
