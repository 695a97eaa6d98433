#!/usr/bin/env bash
# Runs the model checks of core, ult and gas under loom: every execution within the
# preemption bound, of the code as it is and with one planted mutant at a time. All models
# together have eight minutes, without the builds, which use the target folder target/loom.
# LOOM_MAX_PREEMPTIONS overrides the bounds below.
set -euo pipefail
cd "$(dirname "$0")/.."

left=480
export RUSTFLAGS="--cfg tsumugi_loom -D warnings ${RUSTFLAGS:-}"
export RUST_BACKTRACE=0
# Without log output, which would make the models slow.
export LOOM_LOG=0

# check PACKAGE PREEMPTIONS: runs the models of a package in the time that is left.
check() {
    local package=$1 preemptions=$2
    shift 2
    local cargo=(cargo test --release --target-dir target/loom --package "$package" --test loom)
    "${cargo[@]}" --no-run
    # `timeout 0` would be no limit at all.
    ((left > 0)) || { echo "loom: no time is left for the models of $package" >&2; return 1; }
    local begin=$SECONDS
    LOOM_MAX_PREEMPTIONS="${LOOM_MAX_PREEMPTIONS:-$preemptions}" \
        timeout "$left" "${cargo[@]}" -- --nocapture
    left=$((left - (SECONDS - begin)))
}

# planted FOLDER: fails if a mutant in the sources of the folder is planted by no test.
planted() {
    local folder=$1 name missing=0
    for name in $(grep -rhv '^ *//' "$folder/src" |
        grep -oE '\b(mutant|edge|order|less)\("[a-z_]+"[,)]|\bmutate!\("[a-z_]+":' |
        cut -d'"' -f2 | sort -u); do
        if ! grep -rqF "\"$name\"" "$folder/tests" &&
            ! grep -rqF "with_mutant(\"$name\"" "$folder/src"; then
            echo "loom: $folder: no test plants the mutant $name" >&2
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
