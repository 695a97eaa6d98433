#!/usr/bin/env bash
# One job on two and on three nodes, over libfabric: network namespaces with a
# veth each on one bridge, two ranks in each, over tcp and over udp. Then the
# cable is pulled: everybody must hear of it within 5 s, and nobody crash. And it is
# out for 2 s, which costs nothing, and until both sides have given each other up.
# `ci/netns.sh cable TIMES` only pulls the cable, so many times over each of them;
# `ci/netns.sh pauses [SECONDS [SECONDS]]` only holds ranks off, over each of them,
# with 8 busy loops beside: so long, which is less than they are waited for, and longer;
# `ci/netns.sh cuts [SECONDS]` only pulls the cable and puts it in again, over each of
# them: after so long, which is less than ranks are waited for, and when both sides
# have given each other up;
# `ci/netns.sh faults SEED` only runs with the faults of that seed;
# `ci/netns.sh locks` only runs locks and windows;
# `ci/netns.sh programs` only runs programs on arrays whose pages move, over tcp;
# `ci/netns.sh suite` only runs the suite of endpoints;
# `ci/netns.sh links` only links that come late or are slow, and ranks on two networks;
# `ci/netns.sh strangers` only connections to a rank that say nothing;
# `ci/netns.sh hole` only a path that loses long packets, over each of them;
# `ci/netns.sh boxes` only reads of neighbours' memory by loads;
# `ci/netns.sh ring` only counts the cards that neighbours ask for;
# `ci/netns.sh far OPERATIONS` only measures so many of each, over tcp;
# `ci/netns.sh stream` only shows the bandwidth of long messages over tcp;
# `ci/netns.sh figures ...` only figures 4 and 5 between two of them over tcp,
# with MPICH and Open MPI from ci/peers.sh; `...` as of `tsumugi bench message`;
# `ci/netns.sh messages ...` any of its rows, `--only rate8` say;
# `ci/netns.sh pages ...` only pages of arrays over tcp, their home, their owner
# and who uses them each on a node of its own; `...` as of `tsumugi bench gas`;
# `ci/netns.sh readers ...` the same of own beside 0 to 32 readers, on 35 ranks;
# `ci/netns.sh churn ROLE...` only global memory that all use at random, or these
# roles of tests/job on three nodes, over each of them;
# `ci/netns.sh moving` only tests of arrays whose pages move, and histories;
# `ci/netns.sh third` only what a copy between two others takes, over tcp, by the
# congestion control that TSUMUGI_CONTROL names, or reno.
# Those that only measure build what they run, unless TSUMUGI_RELEASE says in which folder
# it was built before.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=ci/left_out.sh
. ci/left_out.sh

# Two of these may run at once.
name=tsu$$
nodes=("$name-1" "$name-2" "$name-3")
if [[ $(id -u) != 0 ]] || ! ip netns add "${nodes[0]}" 2>/dev/null; then
    left_out netns "this user may make no network namespaces"
    exit 0
fi
work=$(mktemp -d)
clean() {
    for node in "${nodes[@]}"; do
        ip netns del "$node" 2>/dev/null || true
    done
    # Those of a namespace that goes are gone some time later.
    for link in "$name-b" "${nodes[@]/%/v}"; do
        ip link del "$link" 2>/dev/null || true
    done
    rm -rf "$work"
}
trap clean EXIT
# shellcheck source=ci/libfabric.sh
. ci/libfabric.sh
ip link add "$name-b" type bridge
ip link set "$name-b" up
for index in 1 2 3; do
    node=$name-$index
    [[ $index == 1 ]] || ip netns add "$node"
    ip link add "${node}v" type veth peer name eth0 netns "$node"
    ip link set "${node}v" master "$name-b"
    ip link set "${node}v" up
    ip -n "$node" addr add "10.94.0.$index/24" dev eth0
    ip -n "$node" link set eth0 up
    ip -n "$node" link set lo up
done

# What only measures is built for that.
case ${1:-} in
stream | third | figures | messages | pages | readers) ;;
*)
    cargo build --quiet --package tsumugi --package tsumugi-cli --examples --bins
    job=$(cargo test --quiet --package tsumugi --test job --no-run --message-format=json |
        sed -n 's/.*"executable":"\([^"]*\/job-[^"]*\)".*/\1/p')
    suite=$(cargo test --quiet --package tsumugi-backends --test ofi --no-run \
        --message-format=json | sed -n 's/.*"executable":"\([^"]*\/ofi-[^"]*\)".*/\1/p')
    ;;
esac
target=$PWD/target/debug
release=${TSUMUGI_RELEASE:-$PWD/target/release}
# Builds what is measured.
for_release() {
    [[ -v TSUMUGI_RELEASE ]] || cargo build --quiet --release "$@"
}
port=20000
export RUST_BACKTRACE=0 TSUMUGI_SPIN=${TSUMUGI_SPIN:-0} TSUMUGI_VERBOSE=1 FI_MR_CACHE_MONITOR=disabled
export TSUMUGI_HEAP_BYTES=$((1 << 30)) TSUMUGI_STACK_BYTES=$((2 << 30))
export TSUMUGI_SECRET='a word that these ranks share'

# Starts a program on so many nodes, two ranks each as a rule, or as many as
# `dealt` says, one after the other to each; pids are in `ranks`.
of_node=2
dealt=
limit=180
start() {
    local count=$1 rank node size
    shift
    port=$((port + 1))
    ranks=()
    : >"$work/log"
    size=${dealt:-$((of_node * count))}
    for ((rank = 0; rank < size; rank++)); do
        node=$((rank / of_node + 1))
        [[ -z $dealt ]] || node=$((rank % count + 1))
        TSUMUGI_RANK=$rank TSUMUGI_SIZE=$size TSUMUGI_MASTER=10.94.0.1:$port \
            TSUMUGI_NODE="node $node" \
            timeout -k 5 "$limit" ip netns exec "$name-$node" unshare --uts \
            sh -c 'hostname "$0"; exec "$@"' "host-$node" "$@" >>"$work/log" 2>&1 &
        ranks+=($!)
    done
}

# Waits for all; `codes` are theirs.
finish() {
    local pid code last=0
    codes=()
    for pid in "${ranks[@]}"; do
        code=0
        # Of one that was killed the shell would say so.
        wait "$pid" 2>/dev/null || code=$?
        codes+=("$code")
        ((code == 0)) || last=$code
    done
    return "$last"
}

# Runs it, and shows what it wrote if it fails.
run() {
    local begin=$SECONDS
    start "$@"
    if ! finish; then
        cat "$work/log"
        echo "netns: $TSUMUGI_PROVIDER, $1 nodes, faults ${TSUMUGI_FAULTS:-none}:" \
            "${*:2} failed" >&2
        exit 1
    fi
    if ! grep -q "on $1 nodes" "$work/log"; then
        cat "$work/log"
        exit 1
    fi
    printf '%-12s %d nodes, %2d s: %s\n' "$TSUMUGI_PROVIDER" "$1" $((SECONDS - begin)) \
        "$(basename "$2") ${*:3}${TSUMUGI_FAULTS:+, faults of seed $TSUMUGI_FAULTS}"
}

# Ranks give each other up after a silence of 1 s here. A machine that is busy with
# others may keep whoever has to notice: one of some times is quick enough, and
# each ends as it must.
pull_the_cable() {
    local _
    for _ in 1 2 3; do
        cable_is_noticed && return
    done
    echo "netns: $TSUMUGI_PROVIDER: the cable was pulled: not all knew within 5 s" >&2
    exit 1
}

cable_is_noticed() {
    # Half as long again, and some beats. The ranks end by themselves.
    TSUMUGI_SILENCE_MS=1000 TSUMUGI_GRACE_MS=3000 start 2 "$job" --role until-lost
    for _ in $(seq 600); do
        [[ $(grep -c working "$work/log") == 4 ]] && break
        sleep 0.1
    done
    if [[ $(grep -c working "$work/log") != 4 ]]; then
        cat "$work/log"
        echo "netns: $TSUMUGI_PROVIDER: not all got to work, with the cable in" >&2
        exit 1
    fi
    # Beats are exchanged by then.
    sleep 1
    local begin last
    begin=$(date +%s%3N)
    ip link set "$name-2v" down
    finish || true
    local ended=$(($(date +%s%3N) - begin))
    ip link set "$name-2v" up
    last=$(sed -n 's/^lost in 5 ways: at //p' "$work/log" | sort -n | tail -1)
    local ms=$((${last:-$((begin + 99999))} - begin))
    if [[ $(grep -c '^lost in 5 ways' "$work/log") != 4 ]] ||
        ! grep -q 'rank 2, rank 3 on host-2: no answer, lost' "$work/log" ||
        ! grep -q 'rank 0, rank 1 on host-1: no answer, lost' "$work/log"; then
        cat "$work/log"
        echo "netns: $TSUMUGI_PROVIDER: the cable was pulled: not all knew" >&2
        exit 1
    fi
    # From 124 on: the limit, or a signal.
    local code
    for code in "${codes[@]}"; do
        if ((code == 0 || code >= 124)); then
            cat "$work/log"
            echo "netns: $TSUMUGI_PROVIDER: the cable was pulled: ended with ${codes[*]}" >&2
            exit 1
        fi
    done
    printf '%-12s the cable was pulled: all knew after %d ms, and had ended after %d\n' \
        "$TSUMUGI_PROVIDER" "$ms" "$ended"
    ((ms <= 5000))
}

# Waits until so many lines say that; the job ends if they never do.
await() {
    local _
    for _ in $(seq 600); do
        [[ $(grep -c "$1" "$work/log") -ge $2 ]] && return
        sleep 0.1
    done
    cat "$work/log"
    echo "netns: $TSUMUGI_PROVIDER: not said $2 times: $1" >&2
    exit 1
}

# Stops a rank in the middle of what it does; its process is `held`.
hold_off() {
    await "^rank $1 pid" 1
    sleep 1
    held=$(sed -n "s/^rank $1 pid //p" "$work/log")
    kill -STOP "$held"
}

# A rank is held off for so many seconds, which is less than it is waited for:
# nobody is given up, and all answers are right.
short_pause() {
    local begin=$SECONDS
    start 2 "$job" --role mixture
    hold_off "$1"
    sleep "$2"
    kill -CONT "$held"
    if ! finish || grep -q 'no answer\|given up' "$work/log"; then
        cat "$work/log"
        echo "netns: $TSUMUGI_PROVIDER: a pause of $2 s has cost something" >&2
        exit 1
    fi
    printf '%-12s 2 nodes, %2d s: rank %d was held off for %s s: nothing came of it\n' \
        "$TSUMUGI_PROVIDER" $((SECONDS - begin)) "$1" "$2"
}

# For so many seconds, which is more, and until it is given up: all are told, and so
# is it when it is back; each ends and none crashes.
long_pause() {
    local begin=$SECONDS code other=$((2 - $1)) over=$work/over
    local names="rank $1, rank $(($1 + 1)) on host-$(($1 / 2 + 1)): no answer, lost"
    rm -f "$over"
    TSUMUGI_TEST_OVER=$over start 2 "$job" --role until-told
    await working 4
    hold_off "$1"
    sleep "$2"
    await "^tsumugi: $names (after 7.5 s of silence)" 1
    kill -CONT "$held"
    await "^tsumugi: rank $1: this rank was given up by rank $other after 7.5 s of silence" 1
    # Who has given it up stays until then, however late it gets a processor.
    await '^lost in 5 ways' 2
    : >"$over"
    finish || true
    # Who was told has ended by itself, and the job with it: none by a crash.
    for code in "${codes[@]}"; do
        if ((code == 0 || code == 124 || code == 134 || code == 139)) || [[ ${codes[$1]} != 1 ]]; then
            cat "$work/log"
            echo "netns: $TSUMUGI_PROVIDER: a pause of $2 s: ended with ${codes[*]}" >&2
            exit 1
        fi
    done
    printf '%-12s 2 nodes, %2d s: rank %d was held off for %s s: given up, told, and ended\n' \
        "$TSUMUGI_PROVIDER" $((SECONDS - begin)) "$1" "$2"
}

# A rank that is not the first of its node is held off for longer than it is waited
# for: the first one ends it, and all hear of that as of a death.
pause_of_a_neighbour() {
    local begin=$SECONDS rank code silence="(after 1.5 s of silence)"
    TSUMUGI_SILENCE_MS=1000 TSUMUGI_GRACE_MS=3000 start 2 "$job" --role mourn
    await 'works as' 4
    hold_off "$1"
    finish || true
    if ! grep -q "^tsumugi: rank $1 on host-2: no answer, lost $silence" "$work/log"; then
        cat "$work/log"
        echo "netns: $TSUMUGI_PROVIDER: rank $1 was stopped: not said" >&2
        exit 1
    fi
    for rank in 0 1 2; do
        code=${codes[$rank]}
        if ! grep -q "^rank $rank heard of rank $1" "$work/log" || ((code == 0 || code >= 124)); then
            cat "$work/log"
            echo "netns: $TSUMUGI_PROVIDER: rank $1 was stopped: ended with ${codes[*]}" >&2
            exit 1
        fi
    done
    if ((codes[$1] != 137)); then
        echo "netns: $TSUMUGI_PROVIDER: rank $1 was stopped: ended with ${codes[*]}" >&2
        exit 1
    fi
    printf '%-12s 2 nodes, %2d s: rank %d was stopped beside the first of its node: ended\n' \
        "$TSUMUGI_PROVIDER" $((SECONDS - begin)) "$1"
}

# All of that while 8 others want the processors.
pauses() {
    local loops=() seconds _
    for _ in 1 2 3 4 5 6 7 8; do
        while :; do :; done &
        loops+=($!)
    done
    trap 'kill "${loops[@]}"; clean' EXIT
    for seconds in ${1-1.5 3 4.5}; do
        short_pause 2 "$seconds"
        short_pause 0 "$seconds"
        short_pause 3 "$seconds"
    done
    for seconds in ${2-8 12}; do
        long_pause 2 "$seconds"
        long_pause 0 "$seconds"
    done
    # Not over udp, where a peer that does not answer holds up all others, beats too.
    [[ $TSUMUGI_PROVIDER == udp* ]] || pause_of_a_neighbour 3
    kill "${loops[@]}"
    trap clean EXIT
}

# The cable is out for so many seconds, which is less than ranks are waited for, while
# messages go: nobody is given up, and all answers are right.
short_cut() {
    local begin=$SECONDS pid
    start 2 "$job" --role mixture
    await '^rank 0 pid' 1
    sleep 1
    ip link set "$name-2v" down
    sleep "$1"
    for pid in "${ranks[@]}"; do
        if ! kill -0 "$pid" 2>/dev/null; then
            cat "$work/log"
            echo "netns: $TSUMUGI_PROVIDER: the cable was out for $1 s: a rank has ended" >&2
            exit 1
        fi
    done
    ip link set "$name-2v" up
    if ! finish || grep -q 'no answer\|given up' "$work/log"; then
        cat "$work/log"
        echo "netns: $TSUMUGI_PROVIDER: the cable was out for $1 s: that has cost something" >&2
        exit 1
    fi
    printf '%-12s 2 nodes, %2d s: mixture, the cable was out for %s s: nothing came of it\n' \
        "$TSUMUGI_PROVIDER" $((SECONDS - begin)) "$1"
}

# The cable is out until both sides have given each other up, and then in again: the
# side with the higher number is told, and ends; neither writes to the other's memory
# but what was on its way when the cable was pulled.
long_cut() {
    local begin=$SECONDS rank code over=$work/over
    rm -f "$over"
    TSUMUGI_SILENCE_MS=1000 TSUMUGI_TEST_OVER=$over start 2 "$job" --role apart
    await working 4
    # Beats are exchanged by then.
    sleep 1
    ip link set "$name-2v" down
    await '^rank . is apart' 4
    ip link set "$name-2v" up
    await '^tsumugi: rank 2: this rank was given up by rank 0 after 1.5 s of silence' 1
    # What is still on its way comes.
    sleep 1
    : >"$over"
    finish || true
    for rank in 0 1; do
        if ! grep -q "^rank $rank has seen the end" "$work/log"; then
            cat "$work/log"
            echo "netns: $TSUMUGI_PROVIDER: apart: rank $rank ended early" >&2
            exit 1
        fi
    done
    for code in "${codes[@]}"; do
        if ((code == 0 || code == 124 || code == 134 || code == 139)) || [[ ${codes[2]} != 1 ]]; then
            cat "$work/log"
            echo "netns: $TSUMUGI_PROVIDER: apart: ended with ${codes[*]}" >&2
            exit 1
        fi
    done
    if ! grep -q 'rank 2, rank 3 on host-2: no answer, lost (after 1.5 s' "$work/log" ||
        ! grep -q 'rank 0, rank 1 on host-1: no answer, lost (after 1.5 s' "$work/log" ||
        grep -q 'was written to' "$work/log"; then
        cat "$work/log"
        echo "netns: $TSUMUGI_PROVIDER: apart: not said, or written to" >&2
        exit 1
    fi
    printf '%-12s 2 nodes, %2d s: apart, and together: one side was told, neither written to\n' \
        "$TSUMUGI_PROVIDER" $((SECONDS - begin))
}

# A network that is slow, loses and reorders, as our own faults make it.
bad_network() {
    local provider
    export TSUMUGI_FAULTS=$1
    for provider in 'tcp;ofi_rxm' 'udp;ofi_rxd'; do
        export TSUMUGI_PROVIDER=$provider
        run 2 "$job" --role meet
        run 2 "$job" --role reach
        run 3 "$job" --role mixture-short
        run 3 "$job" --role churn-short
        run 3 "$job" --role locks-short
    done
    unset TSUMUGI_FAULTS
}

# Locks and windows of ranks on three nodes, and locks whose words the device
# changes: what they protect says whether they do.
locks() {
    run 3 "$job" --role locks-short
    run 3 "$job" --role locks-device
    grep 'writes under' "$work/log"
}

# What every endpoint promises, and ours beyond that, each rank on a node.
conformance() {
    local begin=$SECONDS place="$name-1=10.94.0.1 $name-2=10.94.0.2 $name-3=10.94.0.3"
    if ! TSUMUGI_TEST_NODES=$place timeout 600 ip netns exec "$name-1" "$suite" \
        >"$work/log" 2>&1 || ! grep -q '^test result: ok\. [1-9]' "$work/log"; then
        cat "$work/log"
        echo "netns: the suite of endpoints failed between nodes" >&2
        exit 1
    fi
    printf 'tcp and udp  3 nodes, %2d s: the suite of endpoints: %d promises\n' \
        $((SECONDS - begin)) "$(grep -c '^test .* ok ' "$work/log")"
}

# Two nodes do not reach each other when the job begins: nobody is lost by it.
# Not over udp, where one peer that does not answer holds all others up.
late_link() {
    local begin=$SECONDS
    # Rank 0 is on the first node, so that all find each other.
    ip -n "$name-2" route add unreachable 10.94.0.3/32
    start 3 "$job" --role meet
    for _ in $(seq 600); do
        grep -q 'on 3 nodes' "$work/log" && break
        sleep 0.1
    done
    sleep 1
    ip -n "$name-2" route del unreachable 10.94.0.3/32
    if ! finish; then
        cat "$work/log"
        echo "netns: $TSUMUGI_PROVIDER: a link that came late has ended a job" >&2
        exit 1
    fi
    printf '%-12s 3 nodes, %2d s: meet, over a link that comes late\n' \
        "$TSUMUGI_PROVIDER" $((SECONDS - begin))
}

# Of a ring of neighbours each asks for the cards of whom it speaks to, and for
# no others: one neighbour of each is on another node, and what all do together
# goes by rank 0. The first of a node speaks to those of the others besides; and
# between the two counts, to one more, if a beat falls there.
ring() {
    local rank together all
    run 3 "$job" --role ring
    [[ $(grep -c 'cards:' "$work/log") == 6 ]] || { cat "$work/log" && exit 1; }
    while read -r _ rank _ together _ all _; do
        together=${together%,}
        if ((all > together + 1 + (rank % 2 == 0))) || ((rank % 2 == 1 && all > 2)) ||
            ((rank != 0 && rank % 2 == 0 && all > 4)); then
            cat "$work/log"
            echo "netns: rank $rank has asked for $all cards" >&2
            exit 1
        fi
    done < <(grep 'cards:' "$work/log")
}

# An allgather that the program gives tells all cards at once: a node keeps them
# once.
allgather() {
    mkdir "$work/gather-$TSUMUGI_PROVIDER"
    TSUMUGI_TEST_ALLGATHER=$work/gather-$TSUMUGI_PROVIDER run 3 "$job" --role ring
    if [[ $(grep -c 'cards: 0 together, 0 in all' "$work/log") != 6 ]]; then
        cat "$work/log"
        exit 1
    fi
}

# Each rank reads what another one of its node has, and not what lies at that place
# on its own.
boxes() {
    local rank sum
    for dealt in '' 3; do
        run 2 "$target/examples/boxes"
        [[ $(grep -c 'its sum is' "$work/log") == "${dealt:-4}" ]] || { cat "$work/log" && exit 1; }
        while read -r rank sum; do
            ((sum == 499500 * (rank + 1))) || { cat "$work/log" && exit 1; }
        done < <(sed -n 's/^rank .* a Vec of rank \([0-9]*\) at .* its sum is /\1 /p' "$work/log")
    done
    dealt=
}

# The command that measures between nodes shows its rows.
bench_far() {
    run 2 "$target/tsumugi" bench far --ops "$1"
    local row
    for row in put_bytes get_word fetch_add many_fetch_add; do
        grep -q "$row" "$work/log" || { cat "$work/log" && exit 1; }
    done
}

# Home, requester and owner of pages, each on a node: a page whose place is known
# is read by as many reads as raw memory is, another one by two more at most.
pages() {
    dealt=3
    run 3 "$1" bench gas "${@:2}"
    dealt=
    if ! grep -q ' trips of .* yes$' "$work/log" || grep -q ' trips of .* no$' "$work/log"; then
        cat "$work/log"
        echo "netns: that is more on the wire than it may be" >&2
        exit 1
    fi
}

# Arrays that one rank makes, copies of them, what moves pages for balance; and
# what everybody saw of everything, as if it were one memory.
moving() {
    local of_node=1
    run 3 "$job" --role pages-short
    run 3 "$job" --role moving-short
    run 3 "$job" --role histories-short
}

# Global memory at random, while arrays come and go, and what each word must hold
# is known.
churn() {
    local role
    for role in "${@:-churn-short}"; do
        run 3 "$job" --role "$role"
    done
}

# A link that takes seconds for what is put and got at once: nobody is lost by
# that.
slow_link() {
    local slow='tbf rate 200mbit burst 256kb latency 50ms'
    # shellcheck disable=SC2086
    if ! tc qdisc add dev "$name-2v" root $slow 2>/dev/null ||
        ! ip netns exec "$name-1" tc qdisc add dev eth0 root $slow; then
        left_out "netns: a slow link" "this kernel makes none"
        return
    fi
    run 2 "$job" --role bulk
    tc qdisc del dev "$name-2v" root
    ip netns exec "$name-1" tc qdisc del dev eth0 root
}

# Connections to a rank's data port that say nothing, more than a process has
# descriptors as a rule: the job goes on.
strangers() {
    local begin=$SECONDS of_node=1 port_of talks
    ulimit -Sn 1024
    start 3 "$job" --role crowded
    ulimit -Sn "$(ulimit -Hn)"
    for _ in $(seq 600); do
        [[ $(grep -c working "$work/log") == 3 ]] && break
        sleep 0.1
    done
    port_of=$(ip netns exec "$name-2" ss -Hltn | awk '{ n = split($4, at, ":"); print at[n]; exit }')
    # shellcheck disable=SC2016
    ip netns exec "$name-3" bash -c '
        for ((count = 0; count < 1500; count++)); do
            exec {stranger}<>"/dev/tcp/10.94.0.2/$0" || exit 1
        done
        exec sleep 600' "$port_of" &
    talks=$!
    if ! finish; then
        kill "$talks"
        cat "$work/log"
        echo "netns: 1,500 strangers that say nothing have stopped a job" >&2
        exit 1
    fi
    if ! kill "$talks"; then
        echo "netns: not all of 1,500 strangers have come, or stayed" >&2
        exit 1
    fi
    wait "$talks" || true
    printf '%-12s 3 nodes, %2d s: 1,500 strangers say nothing\n' \
        "$TSUMUGI_PROVIDER" $((SECONDS - begin))
}

# A path that loses whatever is longer than 700 bytes, and says nothing: what is
# put and got is lost, and short beats alone would pass.
black_hole() {
    local begin=$SECONDS only_short='tbf rate 1gbit burst 700b latency 50ms'
    start 2 "$job" --role until-lost-beside-beats
    for _ in $(seq 600); do
        [[ $(grep -c working "$work/log") == 4 ]] && break
        sleep 0.1
    done
    # The time is over that nodes have to start.
    sleep 8
    # shellcheck disable=SC2086
    if ! tc qdisc add dev "$name-2v" root $only_short 2>/dev/null; then
        kill "${ranks[@]}"
        finish || true
        left_out "netns: a path that loses long packets" "this kernel makes none"
        return
    fi
    local from=$SECONDS
    for _ in $(seq 300); do
        grep -q 'no answer, lost' "$work/log" && break
        sleep 0.1
    done
    local said=$((SECONDS - from))
    tc qdisc del dev "$name-2v" root
    finish || true
    if ((said > 10)) || ! grep -q 'no answer, lost (after 7.5 s of silence)' "$work/log"; then
        cat "$work/log"
        echo "netns: $TSUMUGI_PROVIDER: long packets were lost: said after $said s" >&2
        exit 1
    fi
    printf '%-12s 2 nodes, %2d s: long packets are lost: said after %d s\n' \
        "$TSUMUGI_PROVIDER" $((SECONDS - begin)) "$said"
}

# A rank on another network than the others ends all, by name.
another_network() {
    local rank
    port=$((port + 1))
    ranks=()
    : >"$work/log"
    for rank in 0 1; do
        TSUMUGI_PROVIDER=$([[ $rank == 0 ]] && echo 'tcp;ofi_rxm' || echo 'udp;ofi_rxd') \
            TSUMUGI_RANK=$rank TSUMUGI_SIZE=2 TSUMUGI_MASTER=10.94.0.1:$port \
            TSUMUGI_NODE="node $rank" timeout -k 5 "$limit" ip netns exec "$name-$((rank + 1))" \
            "$job" --role meet >>"$work/log" 2>&1 &
        ranks+=($!)
    done
    if finish || ! grep -q 'network is ofi udp;ofi_rxd on .*, this rank.s is ofi tcp;ofi_rxm' "$work/log" ||
        grep -q 'no answer' "$work/log"; then
        cat "$work/log"
        echo "netns: ranks on two networks: not said so" >&2
        exit 1
    fi
    echo 'tcp and udp  2 nodes: ranks on two networks: said by name at start'
}

if [[ ${1:-} == suite ]]; then
    conformance
    exit 0
fi
if [[ ${1:-} == ring ]]; then
    export TSUMUGI_PROVIDER='tcp;ofi_rxm'
    ring
    allgather
    exit 0
fi
if [[ ${1:-} == strangers ]]; then
    export TSUMUGI_PROVIDER='tcp;ofi_rxm'
    strangers
    exit 0
fi
if [[ ${1:-} == hole ]]; then
    for provider in 'tcp;ofi_rxm' 'udp;ofi_rxd'; do
        export TSUMUGI_PROVIDER=$provider
        black_hole
    done
    exit 0
fi
if [[ ${1:-} == boxes ]]; then
    for provider in 'tcp;ofi_rxm' 'udp;ofi_rxd'; do
        export TSUMUGI_PROVIDER=$provider
        boxes
    done
    exit 0
fi
if [[ ${1:-} == far ]]; then
    export TSUMUGI_PROVIDER='tcp;ofi_rxm'
    bench_far "${2:-5000}"
    cat "$work/log"
    exit 0
fi
if [[ ${1:-} == links ]]; then
    export TSUMUGI_PROVIDER='tcp;ofi_rxm'
    another_network
    late_link
    slow_link
    exit 0
fi
if [[ ${1:-} == stream ]]; then
    for_release --package tsumugi --example far_stream
    export TSUMUGI_PROVIDER='tcp;ofi_rxm' TSUMUGI_SPIN=200
    run 2 "$release/examples/far_stream" 3
    grep MB/s "$work/log"
    exit 0
fi
# The same rows of two of ours by tcp, and of two MPIs by tcp. Each rank is kept to
# one core, and has one worker for it, as on one node.
figures() {
    local tsumugi=$release/tsumugi peers=() line
    for_release --package tsumugi-cli
    cat >"$work/launch" <<END
#!/usr/bin/env bash
for rank in 0 1; do
    TSUMUGI_RANK=\$rank TSUMUGI_SIZE=2 TSUMUGI_MASTER=10.94.0.1:29999 TSUMUGI_SPIN=20000 TSUMUGI_NETWORK_SLEEP=looks \\
        TSUMUGI_WORKERS=1 TSUMUGI_PROVIDER='tcp;ofi_rxm' TSUMUGI_NODE="node \$rank" \\
        ip netns exec "$name-\$((rank + 1))" unshare --uts \\
        sh -c 'hostname "\$0"; exec "\$@"' "host-\$rank" \\
        "$tsumugi" bench message --serve "\$1" &
done
wait
END
    # What a launcher of MPI takes for ssh.
    cat >"$work/rsh" <<END
#!/usr/bin/env bash
while [[ \$1 == -* ]]; do shift; done
node=\${1##*.}
shift
exec ip netns exec "$name-\$node" sh -c "\$*"
END
    chmod +x "$work/launch" "$work/rsh"
    local there="ip netns exec $name-1" hosts=10.94.0.1,10.94.0.2
    while read -r line; do
        case $line in
        mpich*)
            local agent="-launcher rsh -launcher-exec $work/rsh -hosts $hosts"
            agent="$agent -localhost 10.94.0.1 -genv FI_PROVIDER tcp -genv MPIR_CVAR_NOLOCAL 1 -genv UCX_TLS tcp,self"
            line=${line/ / "$there "}
            peers+=(--peer "${line/ /_tcp=}")
            peers[-1]=${peers[-1]/mpiexec /mpiexec $agent }
            ;;
        openmpi*)
            local agent="--host 10.94.0.1:1,10.94.0.2:1 --prtemca plm_ssh_agent $work/rsh"
            agent="$agent --mca btl tcp,self --mca btl_tcp_if_include eth0"
            line=${line/ / "$there "}
            peers+=(--peer "${line/ /_tcp=}")
            peers[-1]=${peers[-1]/mpiexec /mpiexec $agent }
            ;;
        esac
    done < <(ci/peers.sh)
    "$tsumugi" bench message --peer "tsumugi_tcp=$work/launch FOLDER" "${peers[@]}" "$@"
}
if [[ ${1:-} == figures ]]; then
    figures --only one_sided "${@:2}"
    exit 0
fi
if [[ ${1:-} == messages ]]; then
    figures "${@:2}"
    exit 0
fi
if [[ ${1:-} == pages ]]; then
    for_release --package tsumugi-cli
    export TSUMUGI_PROVIDER='tcp;ofi_rxm'
    limit=300
    pages "$release/tsumugi" "${@:2}"
    cat "$work/log"
    exit 0
fi
if [[ ${1:-} == readers ]]; then
    for_release --package tsumugi-cli
    export TSUMUGI_PROVIDER='tcp;ofi_rxm'
    limit=540 dealt=35
    run 3 "$release/tsumugi" bench gas --only readers "${@:2}"
    cat "$work/log"
    exit 0
fi
if [[ ${1:-} == moving ]]; then
    export TSUMUGI_PROVIDER='tcp;ofi_rxm'
    moving
    exit 0
fi
if [[ ${1:-} == third ]]; then
    for_release --package tsumugi --example far_third
    # One rank on each, which leaves the cores to whoever has something to do. These
    # links have no bottleneck: a control that looks for one, and sends by the clock
    # as fast as what it has found (bbr), would be all that long copies measure.
    for node in "${nodes[@]}"; do
        ip netns exec "$node" sysctl -qw net.ipv4.tcp_congestion_control="${TSUMUGI_CONTROL:-reno}"
    done
    of_node=1
    export TSUMUGI_PROVIDER='tcp;ofi_rxm' TSUMUGI_SPIN=${2:-0}
    run 3 "$release/examples/far_third" "${3:-300}"
    grep ' of both' "$work/log"
    exit 0
fi
if [[ ${1:-} == churn ]]; then
    limit=300
    for provider in 'tcp;ofi_rxm' 'udp;ofi_rxd'; do
        export TSUMUGI_PROVIDER=$provider
        churn "${@:2}"
    done
    exit 0
fi
if [[ ${1:-} == faults ]]; then
    bad_network "${2:-1}"
    exit 0
fi
if [[ ${1:-} == locks ]]; then
    for provider in 'tcp;ofi_rxm' 'udp;ofi_rxd'; do
        export TSUMUGI_PROVIDER=$provider
        locks
    done
    exit 0
fi
if [[ ${1:-} == programs ]]; then
    export TSUMUGI_PROVIDER='tcp;ofi_rxm'
    run 2 "$job" --role programs-short
    exit 0
fi
if [[ ${1:-} == cable ]]; then
    for ((time = 0; time < ${2:-1}; time++)); do
        TSUMUGI_PROVIDER='tcp;ofi_rxm' pull_the_cable
        TSUMUGI_PROVIDER='udp;ofi_rxd' pull_the_cable
    done
    exit 0
fi
if [[ ${1:-} == pauses ]]; then
    for provider in 'tcp;ofi_rxm' 'udp;ofi_rxd'; do
        export TSUMUGI_PROVIDER=$provider
        pauses "${@:2}"
    done
    exit 0
fi
if [[ ${1:-} == cuts ]]; then
    for provider in 'tcp;ofi_rxm' 'udp;ofi_rxd'; do
        export TSUMUGI_PROVIDER=$provider
        for seconds in ${2-1 2 4}; do
            short_cut "$seconds"
        done
        long_cut
    done
    exit 0
fi
conformance
for provider in 'tcp;ofi_rxm' 'udp;ofi_rxd'; do
    export TSUMUGI_PROVIDER=$provider
    run 2 "$target/examples/hello"
    run 2 "$target/examples/put_get"
    run 2 "$target/examples/global"
    boxes
    run 2 "$job" --role meet
    run 2 "$job" --role reach
    run 3 "$job" --role reach
    run 3 "$job" --role global
    churn
    # Of many short far accesses one after the other.
    [[ $provider == udp* ]] || run 2 "$job" --role programs-short
    short_cut 2
    run 3 "$job" --role mixture
    locks
    run 2 "$job" --role flooded
    run 2 "$job" --role deaf
    ring
    allgather
    pull_the_cable
    long_cut
    [[ $provider == udp* ]] || black_hole
done
another_network
TSUMUGI_PROVIDER='tcp;ofi_rxm'
late_link
slow_link
strangers
short_pause 2 3
pause_of_a_neighbour 3
# A slow, lossy, reordering network: as our own faults make it, and, where the
# kernel has such links, as it does.
bad_network "$RANDOM"
bad='delay 300us 200us loss 0.5% reorder 20% 50%'
# shellcheck disable=SC2086
if tc qdisc add dev "$name-2v" root netem $bad 2>/dev/null &&
    ip netns exec "$name-1" tc qdisc add dev eth0 root netem $bad; then
    for provider in 'tcp;ofi_rxm' 'udp;ofi_rxd'; do
        export TSUMUGI_PROVIDER=$provider
        run 2 "$job" --role meet
        run 2 "$job" --role mixture
    done
    tc qdisc del dev "$name-2v" root
    ip netns exec "$name-1" tc qdisc del dev eth0 root
else
    # Those of our own faults have run.
    echo "netns: bad links of the kernel: it has no netem"
fi
export TSUMUGI_PROVIDER='tcp;ofi_rxm'
run 2 "$target/tsumugi" demo --ults 100
bench_far 500
moving
pages "$target/tsumugi" --quick --ops 64
if pgrep -f "$job --role"; then
    echo "netns: a rank is left" >&2
    exit 1
fi
