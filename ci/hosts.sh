#!/usr/bin/env bash
# Tests `tsumugi run --hosts` with two network namespaces as hosts, which TSUMUGI_RSH
# enters: a job on one host; a job on two hosts over libfabric; a job on two hosts without
# a network, which must fail and say why. Then runs ci/kills.sh, in which ranks are killed
# at work and at their start.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=ci/left_out.sh
. ci/left_out.sh

if [[ $(id -u) != 0 ]] || ! ip netns add tsumugi-a 2>/dev/null; then
    left_out hosts "this user may not create network namespaces"
    exit 0
fi
folder=$(mktemp -d)
clean() {
    ip netns del tsumugi-a 2>/dev/null || true
    ip netns del tsumugi-b 2>/dev/null || true
    rm -r "$folder"
}
trap clean EXIT
ip netns add tsumugi-b
index=1
for name in tsumugi-a tsumugi-b; do
    ip link add "tsu$index" type veth peer name eth0 netns $name
    ip addr add 10.93.$index.1/24 dev "tsu$index"
    ip link set "tsu$index" up
    ip -n $name addr add 10.93.$index.2/24 dev eth0
    ip -n $name link set eth0 up
    ip -n $name link set lo up
    index=$((index + 1))
done
# The namespaces reach each other through the namespace of this script.
ip -n tsumugi-a route add 10.93.2.0/24 via 10.93.1.1
ip -n tsumugi-b route add 10.93.1.0/24 via 10.93.2.1
sysctl -q net.ipv4.ip_forward=1
cat >"$folder/rsh" <<'END'
#!/bin/sh
case $1 in
10.93.1.2) name=tsumugi-a ;;
*) name=tsumugi-b ;;
esac
shift
exec ip netns exec $name sh -c "$*"
END
chmod +x "$folder/rsh"
export TSUMUGI_RSH=$folder/rsh

cargo build --quiet --examples --bins
hello=$PWD/target/debug/examples/hello
timeout 120 target/debug/tsumugi run --hosts 10.93.1.2 -n 3 "$hello" | tee "$folder/log"
[[ $(grep -c 'of 3 drew number' "$folder/log") == 3 ]]
code=0
TSUMUGI_NETWORK=off timeout 120 target/debug/tsumugi run --hosts 10.93.1.2,10.93.2.2 -n 4 "$hello" \
    >"$folder/log" 2>&1 || code=$?
cat "$folder/log"
[[ $code == 1 ]]
[[ $(grep -c 'the 4 ranks of this job are on 2 nodes' "$folder/log") -ge 1 ]]
# shellcheck source=ci/libfabric.sh
. ci/libfabric.sh
timeout 120 target/debug/tsumugi run --hosts 10.93.1.2,10.93.2.2 -n 4 "$hello" | tee "$folder/log"
[[ $(grep -c 'of 4 drew number' "$folder/log") == 4 ]]
ci/kills.sh 5
ci/kills.sh 5 "$RANDOM" start
# An agent may need some time to end.
for _ in $(seq 300); do
    pgrep -f 'tsumugi agent' >/dev/null || break
    sleep 0.1
done
if pgrep -f 'tsumugi agent'; then
    echo "hosts: an agent still runs 30 s after the jobs" >&2
    exit 1
fi
