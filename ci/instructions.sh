#!/usr/bin/env bash
# How many instructions an operation of a ULT takes, one by a global address with
# its rank's table here (`gas_`), a lock that nobody else wants beside a
# fetch-and-add and an add (`lock_`), and a put over libibverbs (`verbs_`), by who
# carries it and how many are under way, without what a simulated library takes, as
# callgrind counts them: the same on every machine and in every run, unlike time.
# Compares with
# `benches/ult/instructions.txt`; more than 5 % above fails, and so does more
# than 5 % below, because then the file is out of date. `--write` writes it.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v valgrind >/dev/null; then
    apt-get update -qq && apt-get install -y -qq valgrind >/dev/null ||
        { echo "ci/instructions.sh needs valgrind, and could not install it" >&2; exit 1; }
fi
noted=benches/ult/instructions.txt
cargo build --release --quiet --package tsumugi-bench-ult --example count
cargo build --release --quiet --package tsumugi-gas --example access
cargo build --release --quiet --package tsumugi --example lock_count
cargo build --release --quiet --package tsumugi-backends --features sim --example verbs_instructions
work=target/instructions
mkdir -p "$work"

examples="${CARGO_TARGET_DIR:-target}/release/examples"
callgrind() {
    valgrind --tool=callgrind --callgrind-out-file="$work/out" "$@" 2>&1 |
        sed -n 's/.*Collected : //p'
}
instructions() {
    local way under_way program
    case $1 in
    # Its second argument is the number of operations.
    gas_*) callgrind "$examples/access" "${1#gas_}" "$(($2 * $3))" ;;
    lock_*) callgrind "$examples/lock_count" "${1#lock_}" "$(($2 * $3))" ;;
    verbs_*)
        IFS=_ read -r _ way under_way <<<"$1"
        program=("$examples/verbs_instructions" "$way" "$under_way" "$(($2 * $3 / under_way))")
        local within=(--toggle-collect='*verbs::sim::calls::post_send'
            --toggle-collect='*verbs::sim::calls::poll_cq')
        echo $(($(callgrind "${program[@]}") - $(callgrind "${within[@]}" "${program[@]}")))
        ;;
    *) callgrind "$examples/count" "$1" "$2" ;;
    esac
}

# Row, and operations in one batch of it.
rows=(
    "yield2 20000"
    "create_join 5000"
    "create_join_inline 5000"
    "fib 28656"
    "fib_no_inline 28656"
    "park_same 10000"
    "mutex 10000"
    "condvar 4000"
    "gas_raw 100000"
    "gas_cached 100000"
    "gas_pinned 100000"
    "lock_fetch_add 100000"
    "lock_add 100000"
    "lock_shared 100000"
    "lock_exclusive 100000"
    "lock_window_shared 100000"
    "lock_window_exclusive 100000"
)
for way in hand direct worker helper; do
    for under_way in 1 16 64; do
        rows+=("verbs_${way}_$under_way 6400")
    done
done
count() {
    # What starting up takes is in both.
    local few many
    few=$(instructions "$1" 1 "$2")
    many=$(instructions "$1" 4 "$2")
    awk -v row="$1" -v few="$few" -v many="$many" -v ops="$2" \
        'BEGIN { printf "%-20s %.1f\n", row, (many - few) / (3 * ops) }'
}
# Whether a row is as it is written down.
is_noted() {
    awk -v row="$1" -v found="$2" '
        $1 == row { ok = found <= $2 * 1.05 && found >= $2 * 0.95 }
        END { exit !ok }
    ' "$noted"
}
for entry in "${rows[@]}"; do
    read -r row ops <<<"$entry"
    counted=$(count "$row" "$ops")
    # One thread that waits for another looks more often where that one is kept
    # from its core: once more then.
    for _ in 1 2; do
        [[ "${1:-}" == --write ]] || is_noted "$row" "${counted##* }" ||
            counted=$(count "$row" "$ops")
    done
    echo "$counted"
done | tee "$work/counted"

if [[ "${1:-}" == --write ]]; then
    cp "$work/counted" "$noted"
    exit
fi
awk '
    NR == FNR { noted[$1] = $2; next }
    !($1 in noted) { printf "%s: not written down\n", $1; failed = 1; next }
    $2 > noted[$1] * 1.05 || $2 < noted[$1] * 0.95 {
        printf "%s: %s instructions, written down are %s\n", $1, $2, noted[$1]
        failed = 1
    }
    END { exit failed }
' "$noted" "$work/counted"
