#!/usr/bin/env bash
# How many instructions an operation of a ULT takes, as callgrind counts them:
# the same on every machine and in every run, unlike time. Compares with
# `benches/ult/instructions.txt`; more than 5 % above fails, and so does more
# than 5 % below, because then the file is out of date. `--write` writes it.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v valgrind >/dev/null; then
    sudo=$([[ $(id -u) == 0 ]] || echo sudo)
    $sudo apt-get update -qq
    $sudo apt-get install -y -qq valgrind >/dev/null
fi
noted=benches/ult/instructions.txt
cargo build --release --quiet --package tsumugi-bench-ult --example count
work=target/instructions
mkdir -p "$work"

# Operations, and instructions for all of them.
counted() {
    valgrind --tool=callgrind --callgrind-out-file="$work/out" \
        target/release/examples/count "$1" "$2" 2>"$work/log"
    sed -n 's/.*Collected : //p' "$work/log"
}

rows="yield2 create_join create_join_inline create_64_join_64 fib fib_no_inline park_same mutex condvar"
for row in $rows; do
    # What starting up takes is in both.
    mapfile -t few < <(counted "$row" 2)
    mapfile -t many < <(counted "$row" 12)
    awk -v row="$row" -v ops=$((many[0] - few[0])) -v taken=$((many[1] - few[1])) \
        'BEGIN { printf "%-20s %.1f\n", row, taken / ops }'
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
