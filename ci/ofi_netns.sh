#!/usr/bin/env bash
# Measures the latency of 8-byte operations between two network namespaces: the libfabric
# backend, and a C program directly on libfabric (ci/ofi_latency.c).
#
#   ci/ofi_netns.sh [ROUNDS [OPERATIONS]]     5 rounds of 2000 operations if not given
#
# Needs root and the packages that ci/ofi.sh installs. The machine may be shared, so the
# two programs alternate, and the smallest result of all rounds is printed.
set -euo pipefail
cd "$(dirname "$0")/.."

rounds=${1:-5} ops=${2:-2000}
cargo build --release --quiet --package tsumugi-backends --example ofi_latency
work=$(mktemp -d)
cc -O2 -o "$work/libfabric" ci/ofi_latency.c -lfabric
cp target/release/examples/ofi_latency "$work/ours"
a=tsumugi$$a b=tsumugi$$b
cleanup() {
    ip netns del "$a" 2>/dev/null || true
    ip netns del "$b" 2>/dev/null || true
    rm -rf "$work"
}
trap cleanup EXIT
ip netns add "$a"
ip netns add "$b"
ip link add veth0 netns "$a" type veth peer name veth0 netns "$b"
ip -n "$a" addr add 10.98.7.1/24 dev veth0
ip -n "$b" addr add 10.98.7.2/24 dev veth0
for space in "$a" "$b"; do
    ip -n "$space" link set lo up
    ip -n "$space" link set veth0 up
done

run() {
    local program=$1 provider=$2 folder
    folder=$(mktemp -d "$work/cards.XXXX")
    taskset -c 1 timeout 60 ip netns exec "$b" \
        "$work/$program" target "$provider" 10.98.7.2 "$folder" &
    taskset -c 0 timeout 60 ip netns exec "$a" \
        "$work/$program" origin "$provider" 10.98.7.1 "$folder" "$ops"
    wait $!
}

for provider in "tcp;ofi_rxm" "udp;ofi_rxd"; do
    for _ in $(seq "$rounds"); do
        run libfabric "$provider"
        run ours "$provider"
    done >"$work/rows"
    echo "$provider, $rounds rounds of $ops operations, microseconds: backend of libfabric (ratio)"
    awk '{ who[$1]; what[$2]; k = $1 SUBSEP $2
           if (!(k in min) || $4 < min[k]) min[k] = $4
           if (!(k in p10) || $6 < p10[k]) p10[k] = $6
           if (!(k in p50) || $8 < p50[k]) p50[k] = $8 }
         END { for (w in what) { l = "libfabric" SUBSEP w; o = "ours" SUBSEP w
               printf "  %-10s min %6.2f of %6.2f (%.2f)  p10 %6.2f of %6.2f (%.2f)  p50 %6.2f of %6.2f (%.2f)\n",
                   w, min[o], min[l], min[o] / min[l], p10[o], p10[l], p10[o] / p10[l],
                   p50[o], p50[l], p50[o] / p50[l] } }' "$work/rows"
done
