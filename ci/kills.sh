#!/usr/bin/env bash
# Kills a rank of a job on two or three nodes at a random time, TIMES times (5 if not
# given). Nodes are network namespaces, which TSUMUGI_RSH enters.
#
#   ci/kills.sh [TIMES [SEED [start]]]
#
# Checks that the launcher names the rank that died and ends with its code, that programs
# on all nodes get an error with the number of that rank and have a second before they are
# ended, and that no process is left. The last job loses an agent instead of a rank.
#
# With `start` each rank is killed by SIGKILL within 0.2 s of the start of its process,
# in most cases before it has joined the job; some of these jobs run on this node alone.
# The launcher must name the rank, and no process may be left.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=ci/left_out.sh
. ci/left_out.sh

times=${1:-5}
seed=${2:-$RANDOM}
way=${3:-work}
RANDOM=$seed
name=tsk$$
if [[ $(id -u) != 0 ]] || ! ip netns add "$name-1" 2>/dev/null; then
    left_out kills "this user may not create network namespaces"
    exit 0
fi
work=$(mktemp -d)
launcher=
clean() {
    local index
    # Kills the process group of `timeout`; an agent ends when its input is closed.
    [[ -z $launcher ]] || kill -KILL -- "-$launcher" 2>/dev/null || true
    for index in 1 2 3; do
        ip netns del "$name-$index" 2>/dev/null || true
        ip link del "$name-${index}v" 2>/dev/null || true
    done
    ip link del "$name-b" 2>/dev/null || true
    rm -rf "$work"
}
trap clean EXIT
# shellcheck source=ci/libfabric.sh
. ci/libfabric.sh
# The launcher has the address of the bridge.
ip link add "$name-b" type bridge
ip addr add 10.95.0.254/24 dev "$name-b"
ip link set "$name-b" up
for index in 1 2 3; do
    [[ $index == 1 ]] || ip netns add "$name-$index"
    ip link add "$name-${index}v" type veth peer name eth0 netns "$name-$index"
    ip link set "$name-${index}v" master "$name-b"
    ip link set "$name-${index}v" up
    ip -n "$name-$index" addr add "10.95.0.$index/24" dev eth0
    ip -n "$name-$index" link set eth0 up
    ip -n "$name-$index" link set lo up
done
cat >"$work/rsh" <<END
#!/bin/sh
index=\${1##*.}
shift
exec ip netns exec $name-\$index sh -c "\$*"
END
chmod +x "$work/rsh"

cargo build --quiet --examples --bins
job=$(cargo test --quiet --package tsumugi --test job --no-run --message-format=json |
    sed -n 's/.*"executable":"\([^"]*\/job-[^"]*\)".*/\1/p')
tsumugi=$PWD/target/debug/tsumugi
export TSUMUGI_RSH=$work/rsh TSUMUGI_SPIN=0 RUST_BACKTRACE=0 FI_MR_CACHE_MONITOR=disabled
export TSUMUGI_HEAP_BYTES=$((1 << 30)) TSUMUGI_STACK_BYTES=$((2 << 30))
log=$work/log

failed() {
    cat "$log"
    echo "kills: seed $seed, kill $time, $what: $1" >&2
    exit 1
}

# says COUNT PATTERN: fails unless exactly COUNT lines of the log match.
says() {
    local count
    count=$(grep -cE "$2" "$log" || true)
    [[ $count == "$1" ]] || failed "$count lines match '$2', not $1"
}

nothing_left() {
    for _ in $(seq 100); do
        pgrep -f "$job --role mourn|$tsumugi agent" >/dev/null || break
        sleep 0.1
    done
    if pgrep -fa "$job --role mourn|$tsumugi agent"; then
        failed "a process still runs 10 s after the job"
    fi
}

# process_of RANK: prints the process of the rank as soon as its program runs; nothing if
# the job ends first.
process_of() {
    local path
    while kill -0 "$launcher" 2>/dev/null; do
        for path in $(grep -lzx "TSUMUGI_RANK=$1" /proc/[0-9]*/environ 2>/dev/null); do
            if grep -qzx "TSUMUGI_TEST_KILLS=$name" "$path" 2>/dev/null; then
                path=${path#/proc/}
                echo "${path%/environ}"
                return
            fi
        done
    done
}

# Runs a job, and kills one of its ranks soon after the start of its process.
starts() {
    local nodes=$((1 + RANDOM % 3)) ranks victim delay pid got=0
    ranks=$((nodes + RANDOM % 5))
    victim=$((RANDOM % ranks))
    delay=$((RANDOM % 4 ? RANDOM % 200 : 0))
    local hosts=() from=tsumugi
    if ((nodes > 1)); then
        hosts=(--hosts "10.95.0.1,10.95.0.2$( ((nodes == 2)) || echo ,10.95.0.3)")
        from='tsumugi: host 10\.95\.0\.[123]'
    fi
    what="rank $victim of $ranks on $nodes nodes $delay ms after its start"
    TSUMUGI_TEST_KILLS=$name timeout -k 5 120 \
        "$tsumugi" run "${hosts[@]}" -n "$ranks" "$job" --role mourn >"$log" 2>&1 &
    launcher=$!
    pid=$(process_of "$victim")
    [[ -n $pid ]] || failed "the job ended before this rank had a process"
    sleep "0.$(printf %03d "$delay")"
    kill -KILL "$pid" || failed "process $pid ended before the kill"
    wait "$launcher" || got=$?
    launcher=
    [[ $got == 137 ]] || failed "the launcher ended with code $got, not 137"
    says 1 "^$from: rank $victim \(pid $pid\) was killed by signal 9 \(SIGKILL\)\$"
    says 1 'was killed by|exited with'
    says 0 'no answer, lost'
    nothing_left
    echo "kills: $what: named"
}

if [[ $way == start ]]; then
    for ((time = 1; time <= times; time++)); do starts; done
    echo "kills: $times ranks were killed at their start (seed $seed): all named, no process left"
    exit 0
fi
for ((time = 1; time <= times; time++)); do
    nodes=$((2 + RANDOM % 2))
    ranks=$((nodes + RANDOM % 5))
    victim=$((RANDOM % ranks))
    delay=$((RANDOM % 400))
    export TSUMUGI_TEST_SEED=$((RANDOM % 3))
    export TSUMUGI_PROVIDER='tcp;ofi_rxm'
    ((RANDOM % 4)) || TSUMUGI_PROVIDER='udp;ofi_rxd'
    case $((RANDOM % 4)) in
    0) signal=KILL code=137 end='was killed by signal 9 \(SIGKILL\)' ;;
    1) signal=SEGV code=139 end='was killed by signal 11 \(SIGSEGV\)' ;;
    2) signal=ABRT code=134 end='was killed by signal 6 \(SIGABRT\)' ;;
    3) signal=USR2 code=3 end='exited with code 3' ;;
    esac
    hosts=10.95.0.1,10.95.0.2
    ((nodes == 2)) || hosts=$hosts,10.95.0.3
    what="rank $victim of $ranks on $nodes nodes over $TSUMUGI_PROVIDER by $signal after $delay ms"
    what="$what, TSUMUGI_TEST_SEED=$TSUMUGI_TEST_SEED"
    # Lines of the last job must not be read before the next one has begun.
    : >"$log"
    timeout -k 5 120 "$tsumugi" run --hosts $hosts -n "$ranks" "$job" --role mourn >"$log" 2>&1 &
    launcher=$!
    for _ in $(seq 600); do
        [[ $(grep -c ' works as ' "$log") == "$ranks" ]] && break
        sleep 0.1
    done
    says "$ranks" '^rank [0-9]+ works as [0-9]+$'
    pid=$(sed -n "s/^rank $victim works as //p" "$log")
    sleep "0.$(printf %03d "$delay")"
    kill -"$signal" "$pid"
    got=0
    wait "$launcher" || got=$?
    launcher=
    [[ $got == "$code" ]] || failed "the launcher ended with code $got, not $code"
    says 1 "^tsumugi: host 10\.95\.0\.[123]: rank $victim \(pid $pid\) $end\$"
    says 1 'was killed by|exited with'
    says 0 'no answer, lost'
    others=0
    for ((rank = 0; rank < ranks; rank++)); do
        ((rank != victim)) || continue
        others=$((others + 1))
        if (((TSUMUGI_TEST_SEED + rank) % 3 == 2)); then
            says 1 "^rank $rank had a second\$"
        fi
        # Later errors of this rank may name a neighbour that ended because of this death.
        [[ $(grep -m 1 "^rank $rank heard " "$log") == "rank $rank heard of rank $victim" ]] ||
            failed "the first death that rank $rank heard of is not that of rank $victim"
    done
    says 1 "^tsumugi: $others other ranks* ended because of it\$"
    nothing_left
    echo "kills: $what: named by the launcher, all ranks informed"
done
# The agent of a host is killed: its ranks die with it, and the ranks of the other host
# hear of the first of them.
what="the agent of the second host"
timeout -k 5 120 \
    "$tsumugi" run --hosts 10.95.0.1,10.95.0.2 -n 6 "$job" --role mourn >"$log" 2>&1 &
launcher=$!
for _ in $(seq 600); do
    [[ $(grep -c ' works as ' "$log") == 6 ]] && break
    sleep 0.1
done
says 6 '^rank [0-9]+ works as [0-9]+$'
kill -KILL "$(ps -o ppid= "$(sed -n 's/^rank 3 works as //p' "$log")")"
got=0
wait "$launcher" || got=$?
launcher=
[[ $got == 137 ]] || failed "the launcher ended with code $got, not 137"
says 1 '^tsumugi: host 10\.95\.0\.2: the agent ended with code 137$'
says 0 'was killed by|exited with|no answer, lost'
for rank in 0 1 2; do
    [[ $(grep -m 1 "^rank $rank heard " "$log") == "rank $rank heard of rank 3" ]] ||
        failed "the first death that rank $rank heard of is not that of rank 3"
done
nothing_left
echo "kills: $times ranks were killed (seed $seed): all named, all ranks informed, no process left"
