#!/usr/bin/env bash
# Latency and rate of 8 bytes between two network namespaces over tcp, of the
# facade's blocking calls beside the same work in C straight over libfabric:
# `ci/far_latency.sh [rounds] [operations]`. Needs root, and what ci/ofi.sh
# installs. One ULT after another, then 64 at once; the rounds alternate.
#
#   median: of the rounds' medians (of 64: of their means)   min: the smallest
set -euo pipefail
cd "$(dirname "$0")/.."

rounds=${1:-5} ops=${2:-2000}
work=$(mktemp -d)
a=tsul$$a b=tsul$$b
if [[ $(id -u) != 0 ]] || ! ip netns add "$a" 2>/dev/null; then
    echo "far_latency: skipped: this user may make no network namespaces"
    exit 0
fi
clean() {
    ip netns del "$a" 2>/dev/null || true
    ip netns del "$b" 2>/dev/null || true
    rm -rf "$work"
}
trap clean EXIT
cargo build --release --quiet --package tsumugi --example far_latency
cc -O2 -o "$work/libfabric" ci/ofi_latency.c -lfabric
cp target/release/examples/far_latency "$work/ours"
ip netns add "$b"
ip link add veth0 netns "$a" type veth peer name veth0 netns "$b"
ip -n "$a" addr add 10.98.8.1/24 dev veth0
ip -n "$b" addr add 10.98.8.2/24 dev veth0
for space in "$a" "$b"; do
    ip -n "$space" link set lo up
    ip -n "$space" link set veth0 up
done
# A link that has just come up refuses who is too early.
sleep 2
provider=${TSUMUGI_PROVIDER:-tcp;ofi_rxm}
export TSUMUGI_PROVIDER=$provider TSUMUGI_SECRET='a word that these two share' TSUMUGI_WORKERS=1
export FI_MR_CACHE_MONITOR=${FI_MR_CACHE_MONITOR:-disabled}
# Each rank has a core of its own here, which it cannot know.
export TSUMUGI_SPIN=${TSUMUGI_SPIN:-200}
port=20100

libfabric() {
    local folder
    folder=$(mktemp -d "$work/cards.XXXX")
    taskset -c 1 timeout 60 ip netns exec "$b" \
        "$work/libfabric" target "$provider" 10.98.8.2 "$folder" &
    taskset -c 0 timeout 60 ip netns exec "$a" \
        "$work/libfabric" origin "$provider" 10.98.8.1 "$folder" "$ops" rates
    wait $!
}

ours() {
    local rank space pids=()
    port=$((port + 1))
    for rank in 1 0; do
        space=$a
        [[ $rank == 0 ]] || space=$b
        TSUMUGI_RANK=$rank TSUMUGI_SIZE=2 TSUMUGI_MASTER=10.98.8.1:$port \
            TSUMUGI_NODE="node $rank" taskset -c "$rank" timeout 60 ip netns exec "$space" \
            "$work/ours" 1 "$ops" &
        pids+=($!)
    done
    wait "${pids[0]}" && wait "${pids[1]}"
}

for ((round = 0; round < rounds; round++)); do
    libfabric
    ours
done >"$work/rows"
echo "$provider, $rounds rounds of $ops operations, microseconds, ours of libfabric's (ratio)"
awk -v rounds="$rounds" '
    { k = $1 SUBSEP $2; n[k]++; what[$2]
      mid = $3 == "each" ? $4 : $8; all[k, n[k]] = mid
      if (!(k in min) || $4 < min[k]) min[k] = $4 }
    function median(k,    i, j, t, c, v) {
        c = n[k]
        for (i = 1; i <= c; i++) v[i] = all[k, i]
        for (i = 1; i <= c; i++) for (j = i + 1; j <= c; j++) if (v[j] < v[i]) {
            t = v[i]; v[i] = v[j]; v[j] = t }
        return v[int((c + 1) / 2)] }
    END { for (w in what) {
        l = "libfabric" SUBSEP w; o = "ours" SUBSEP w
        printf "  %-16s median %7.2f of %7.2f (%.2f)  min %7.2f of %7.2f (%.2f)\n", w,
            median(o), median(l), median(o) / median(l), min[o], min[l], min[o] / min[l] } }' \
    "$work/rows" | sort
