#!/usr/bin/env bash
# Counts the instructions of an operation with callgrind. Unlike times, the counts are the
# same on every machine and in every run.
#
#   no prefix   operations of ULTs
#   gas_        an access by a global address, with the table of its rank in the cache
#   lock_       an uncontended lock, and for comparison a fetch-and-add and an add
#   c_          an operation through tsumugi.h, from the call to its return, the loop
#               of its caller included; c_acp_ one through acp.h, with its acp_complete
#   verbs_      a put over libibverbs, by executor and number of operations in flight,
#               without the instructions of the simulated library
#
# Compares with benches/ult/instructions.txt. A count that is more than 5 % higher fails;
# so does one that is more than 5 % lower, because the file is then out of date.
# `ci/instructions.sh --write` writes the file. Installs valgrind if it is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v valgrind >/dev/null; then
    apt-get update -qq && apt-get install -y -qq valgrind >/dev/null ||
        { echo "instructions: valgrind is missing and cannot be installed" >&2; exit 1; }
fi
noted=benches/ult/instructions.txt
cargo build --release --quiet --package tsumugi-bench-ult --example count
cargo build --release --quiet --package tsumugi-gas --example access
cargo build --release --quiet --package tsumugi --example lock_count
cargo build --release --quiet --package tsumugi-backends --example verbs_instructions
cargo build --release --quiet --package tsumugi-library
work=target/instructions
mkdir -p "$work"
"${CC:-cc}" -O2 -Iinclude ci/rigs/access_time.c -o "$work/access_time" \
    "${CARGO_TARGET_DIR:-target}/release/libtsumugi.a" -pthread -lm -ldl -lgcc_s

examples="${CARGO_TARGET_DIR:-target}/release/examples"
callgrind() {
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$@" 2>&1 |
        sed -n 's/.*Collected : //p'
}
instructions() {
    local way under_way program
    case $1 in
    # The second argument of these programs is the number of operations.
    gas_*) callgrind "$examples/access" "${1#gas_}" "$(($2 * $3))" ;;
    lock_*) callgrind "$examples/lock_count" "${1#lock_}" "$(($2 * $3))" ;;
    # Only the calls count, because the start of a job is not the same in every run.
    c_*)
        callgrind --toggle-collect=measured "$work/access_time" "${1#c_}" "$(($2 * $3))"
        ;;
    verbs_*)
        IFS=_ read -r _ way under_way <<<"$1"
        program=("$examples/verbs_instructions" "$way" "$under_way" "$(($2 * $3 / under_way))")
        local within=(--toggle-collect='*test_networks::verbs::calls::post_send'
            --toggle-collect='*test_networks::verbs::calls::poll_cq')
        echo $(($(callgrind "${program[@]}") - $(callgrind "${within[@]}" "${program[@]}")))
        ;;
    *) callgrind "$examples/count" "$1" "$2" ;;
    esac
}

# The rows: a name, and the number of operations in one batch.
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
    "c_put 5000"
    "c_get 5000"
    "c_fetch_add 5000"
    "c_copy 5000"
    "c_acp_copy 5000"
    "c_acp_add8 5000"
    "c_create_join 5000"
)
for way in hand direct worker helper; do
    for under_way in 1 16 64; do
        rows+=("verbs_${way}_$under_way 6400")
    done
done
count() {
    # Both counts include the start of the program, which the difference removes.
    local few many
    few=$(instructions "$1" 1 "$2")
    many=$(instructions "$1" 4 "$2")
    awk -v row="$1" -v few="$few" -v many="$many" -v ops="$2" \
        'BEGIN { printf "%-20s %.1f\n", row, (many - few) / (3 * ops) }'
}
# is_noted ROW COUNT: succeeds if the count is within 5 % of the row in the file.
is_noted() {
    awk -v row="$1" -v found="$2" '
        $1 == row { ok = found <= $2 * 1.05 && found >= $2 * 0.95 }
        END { exit !ok }
    ' "$noted"
}
# count_row [--write] ROW OPS: counts a row, to a file of its own.
count_row() {
    local mode=$1 row=$2 ops=$3 counted
    counted=$(count "$row" "$ops")
    # A thread that waits for another one polls more often while that one is off its
    # core: such a row is counted again, up to two times.
    for _ in 1 2; do
        [[ $mode == --write ]] || is_noted "$row" "${counted##* }" ||
            counted=$(count "$row" "$ops")
    done
    echo "$counted" >"$work/rows/$row"
}
rm -rf "$work/rows"
mkdir "$work/rows"
# Each core counts a row.
running=0
for entry in "${rows[@]}"; do
    read -r row ops <<<"$entry"
    ((running++ < $(nproc))) || wait -n
    count_row "${1:-}" "$row" "$ops" &
done
wait
for entry in "${rows[@]}"; do
    cat "$work/rows/${entry% *}"
done | tee "$work/counted"

if [[ "${1:-}" == --write ]]; then
    cp "$work/counted" "$noted"
    exit
fi
awk '
    NR == FNR { noted[$1] = $2; next }
    !($1 in noted) { printf "%s: no such row in the file\n", $1; failed = 1; next }
    $2 > noted[$1] * 1.05 || $2 < noted[$1] * 0.95 {
        printf "%s: %s instructions, more than 5 %% from the %s of the file\n", $1, $2, noted[$1]
        failed = 1
    }
    END { exit failed }
' "$noted" "$work/counted"
