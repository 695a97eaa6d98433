#!/usr/bin/env bash
# Latency and rate of 8 bytes between two network namespaces over tcp, of the
# facade's blocking calls beside the same work in C straight over libfabric and
# over UCX: `ci/far_latency.sh [rounds] [operations]`. Needs root, and what
# ci/ofi.sh installs; UCX is a Python wheel's, and is left out where that cannot
# be had. One ULT's operations after another, an OS thread's, then 64 ULTs' at
# once. The rounds alternate: a machine has several states, so what counts is the
# ratio within a round.
#
#   libfabric, ucx   both sides poll all the time
#   polling          so do our ranks (TSUMUGI_SPIN)
#   looking          and the device has no descriptor (TSUMUGI_NETWORK_SLEEP)
#   ours             a rank that waits sleeps after 200 rounds
#
#   median: of the rounds' medians (of 64: of their means)   min: the smallest
#   ratio: the median of the rounds' ratios to libfabric's own
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=ci/left_out.sh
. ci/left_out.sh

rounds=${1:-5} ops=${2:-2000}
work=$(mktemp -d)
a=tsul$$a b=tsul$$b
if [[ $(id -u) != 0 ]] || ! ip netns add "$a" 2>/dev/null; then
    left_out far_latency "this user may make no network namespaces"
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
ucx=$PWD/target/peers/ucx
install_ucx() {
    [[ -e $ucx/ready ]] && return 0
    mkdir -p "$ucx"
    python3 -m venv "$ucx" && "$ucx/bin/pip" install --quiet libucx-cu12==1.22.0 && touch "$ucx/ready"
}
if install_ucx >&2; then
    of_ucx=$(echo "$ucx"/lib/python3*/site-packages/libucx)
    cc -O2 -o "$work/ucx" ci/ucx_latency.c -I"$of_ucx/include" -L"$of_ucx/lib" -lucp -lucs \
        -Wl,-rpath,"$of_ucx/lib"
else
    echo "far_latency: no UCX: no network, or no wheel of libucx-cu12 for this machine" >&2
fi
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

ucx() {
    local folder
    [[ -x $work/ucx ]] || return 0
    folder=$(mktemp -d "$work/cards.XXXX")
    UCX_TLS=tcp,self UCX_NET_DEVICES=veth0 taskset -c 1 timeout 60 ip netns exec "$b" \
        "$work/ucx" target "$folder" &
    UCX_TLS=tcp,self UCX_NET_DEVICES=veth0 taskset -c 0 timeout 60 ip netns exec "$a" \
        "$work/ucx" origin "$folder" "$ops"
    wait $!
}

# Each rank has a core of its own here, which it cannot know.
ours() {
    local name=$1 rank space pids=()
    port=$((port + 1))
    for rank in 1 0; do
        space=$a
        [[ $rank == 0 ]] || space=$b
        TSUMUGI_RANK=$rank TSUMUGI_SIZE=2 TSUMUGI_MASTER=10.98.8.1:$port \
            TSUMUGI_NODE="node $rank" TSUMUGI_SPIN=$2 TSUMUGI_NETWORK_SLEEP=$3 \
            taskset -c "$rank" timeout 60 ip netns exec "$space" \
            "$work/ours" 1 "$ops" | sed "s/^ours/$name/" &
        pids+=($!)
    done
    wait "${pids[0]}" && wait "${pids[1]}"
}

for ((round = 0; round < rounds; round++)); do
    libfabric
    ours polling 1000000000 called
    ours looking 1000000000 looks
    ours ours 200 called
    ucx
done >"$work/rows"
echo "$provider, $rounds rounds of $ops operations, microseconds, of libfabric's (ratio)"
awk '
    { k = $1 SUBSEP $2; n[k]++; what[$2]; who[$1]
      mid = $3 == "each" ? $4 : $8; all[k, n[k]] = mid
      if (!(k in min) || $4 < min[k]) min[k] = $4 }
    function median(v, c,    i, j, t) {
        for (i = 1; i <= c; i++) for (j = i + 1; j <= c; j++) if (v[j] < v[i]) {
            t = v[i]; v[i] = v[j]; v[j] = t }
        return v[int((c + 1) / 2)] }
    END { for (w in what) for (o in who) {
        k = o SUBSEP w
        # What a thread does one after another is as one ULT does it.
        base = w; sub(/-of-a-thread/, "", base); l = "libfabric" SUBSEP base
        if (!(k in n)) continue
        for (i = 1; i <= n[k]; i++) { v[i] = all[k, i]; r[i] = all[k, i] / all[l, i] }
        for (i = 1; i <= n[l]; i++) u[i] = all[l, i]
        if (o != "libfabric")
            printf "  %-22s %-8s median %7.2f of %7.2f (%.2f)  min %7.2f of %7.2f\n",
                w, o, median(v, n[k]), median(u, n[l]), median(r, n[k]), min[k], min[l] } }' "$work/rows" | sort
