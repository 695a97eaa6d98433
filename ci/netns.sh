#!/usr/bin/env bash
# Runs jobs on two and three nodes over libfabric. The nodes are network namespaces, each
# with a veth pair to one bridge; a node has two ranks in most jobs. Needs root.
#
#   ci/netns.sh                      all checks that a change must pass, over tcp and udp
#
# With an argument only one part runs. Checks:
#
#   ci/netns.sh suite                the conformance suite of endpoints
#   ci/netns.sh ring                 counts the cards (endpoint information) that ranks of a
#                                    ring request; over tcp
#   ci/netns.sh boxes                loads from the memory of ranks of the same node
#   ci/netns.sh locks                locks and windows
#   ci/netns.sh mpi [NAME]...        programs of mpi/tests/programs, these or a selection; over tcp
#   ci/netns.sh churn [ROLE]...      random accesses to global memory, or these roles of
#                                    tests/job, on three nodes
#   ci/netns.sh moving               arrays whose pages move, and their histories; over tcp
#   ci/netns.sh programs             programs on such arrays; over tcp
#   ci/netns.sh faults [SEED]        jobs with the injected faults of that seed (1)
#   ci/netns.sh links                ranks on two networks, links that come late or are
#                                    slow; over tcp
#   ci/netns.sh strangers            1,500 connections to a rank that send nothing; over tcp
#   ci/netns.sh hole                 a path that loses long packets
#   ci/netns.sh cable [TIMES]        cuts the link of a node, TIMES times (1): all ranks must
#                                    know within 5 s, and none may crash
#   ci/netns.sh cuts [SECONDS]       cuts the link for less time than the silence limit
#                                    ('1 2 4'), and until both sides have given each other up
#   ci/netns.sh pauses [SHORT [LONG]]
#                                    stops a rank, beside 8 busy loops: for less time than
#                                    the silence limit ('1.5 3 4.5'), and for more ('8 12')
#   ci/netns.sh writers [TIMES]      stops a rank while it writes, and cuts the link: once its
#                                    node is given up, nothing that it writes lands
#
# Measurements over tcp, which build what they run in release mode, unless TSUMUGI_TEST_RELEASE
# is the folder of an earlier build (`far` uses the debug build):
#
#   ci/netns.sh far [OPERATIONS]     `tsumugi bench far`, 5000 operations of each row
#   ci/netns.sh stream               the bandwidth of long messages
#   ci/netns.sh third [SPIN [ROUNDS]]
#                                    a copy between two other ranks; TSUMUGI_TEST_CONTROL names
#                                    the congestion control (reno)
#   ci/netns.sh figures ARGUMENT...  puts and gets as in figures 4 and 5 of the ACP paper,
#                                    beside MPICH and Open MPI from ci/peers.sh; arguments of
#                                    `tsumugi bench message`
#   ci/netns.sh messages ARGUMENT... other rows of that command, such as `--only rate8`
#   ci/netns.sh algorithms [OF_NODE] ARGUMENT...
#                                    collectives by each of their algorithms, on 2, 4 and 8 ranks,
#                                    OF_NODE (1) on each node; TSUMUGI_TEST_RATE limits the links
#                                    (such as 1gbit)
#   ci/netns.sh pages ARGUMENT...    pages of arrays; home, owner and requester are on three
#                                    nodes; arguments of `tsumugi bench gas`
#   ci/netns.sh readers ARGUMENT...  `own` beside 0 to 32 readers, on 35 ranks
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=ci/left_out.sh
. ci/left_out.sh
# shellcheck source=ci/mpi_programs.sh
. ci/mpi_programs.sh

# The names contain the process id, so that two runs of this script do not meet.
name=tsu$$
count=3
[[ ${1:-} != algorithms ]] || count=8
nodes=()
for ((index = 1; index <= count; index++)); do nodes+=("$name-$index"); done
if [[ $(id -u) != 0 ]] || ! ip netns add "${nodes[0]}" 2>/dev/null; then
    left_out netns "this user may not create network namespaces"
    exit 0
fi
work=$(mktemp -d)
clean() {
    for node in "${nodes[@]}"; do
        ip netns del "$node" 2>/dev/null || true
    done
    # The kernel removes the links of a deleted namespace only some time later.
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
for ((index = 1; index <= count; index++)); do
    node=$name-$index
    [[ $index == 1 ]] || ip netns add "$node"
    ip link add "${node}v" type veth peer name eth0 netns "$node"
    ip link set "${node}v" master "$name-b"
    ip link set "${node}v" up
    ip -n "$node" addr add "10.94.0.$index/24" dev eth0
    ip -n "$node" link set eth0 up
    ip -n "$node" link set lo up
done

# Measurements build their own programs.
case ${1:-} in
stream | third | figures | messages | algorithms | pages | readers) ;;
mpi) cargo build --quiet --lib --examples --bins ;;
*)
    cargo build --quiet --lib --examples --bins
    job=$(cargo test --quiet --package tsumugi --test job --no-run --message-format=json |
        sed -n 's/.*"executable":"\([^"]*\/job-[^"]*\)".*/\1/p')
    suite=$(cargo test --quiet --package tsumugi-backends --test ofi --no-run \
        --message-format=json | sed -n 's/.*"executable":"\([^"]*\/ofi-[^"]*\)".*/\1/p')
    ;;
esac
target=$PWD/target/debug
release=${TSUMUGI_TEST_RELEASE:-$PWD/target/release}
# for_release ARGUMENT...: builds in release mode, unless TSUMUGI_TEST_RELEASE is set.
for_release() {
    [[ -v TSUMUGI_TEST_RELEASE ]] || cargo build --quiet --release "$@"
}
port=20000
export RUST_BACKTRACE=0 TSUMUGI_SPIN=${TSUMUGI_SPIN:-0} TSUMUGI_VERBOSE=on FI_MR_CACHE_MONITOR=disabled
export TSUMUGI_HEAP_BYTES=$((1 << 30)) TSUMUGI_STACK_BYTES=$((2 << 30))
export TSUMUGI_SECRET='a word that these ranks share'

# start NODES COMMAND...: starts a job. Each node has `of_node` ranks with consecutive numbers;
# or, if `dealt` is set, so many ranks in all go to the nodes in turn. `ranks` has the pids.
of_node=2
dealt=
limit=400
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

# Waits for all ranks; `codes` has their exit codes.
finish() {
    local pid code last=0
    codes=()
    for pid in "${ranks[@]}"; do
        code=0
        # The shell would print a line for a rank that was killed.
        wait "$pid" 2>/dev/null || code=$?
        codes+=("$code")
        ((code == 0)) || last=$code
    done
    return "$last"
}

# run NODES COMMAND...: runs a job, and shows its output if it fails.
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
        echo "netns: $TSUMUGI_PROVIDER, ${*:2}: the job was not on $1 nodes" >&2
        exit 1
    fi
    printf '%-12s %d nodes, %2d s: %s\n' "$TSUMUGI_PROVIDER" "$1" $((SECONDS - begin)) \
        "$(basename "$2") ${*:3}${TSUMUGI_FAULTS:+, faults of seed $TSUMUGI_FAULTS}"
}

# Cuts the link of a node while ranks work. Nodes give each other up after 1.5 s here. On a
# busy machine the threads that notice this may get a core late, so one of three tries has
# to be quick enough; in each try all ranks must end with an error.
pull_the_cable() {
    local _
    for _ in 1 2 3; do
        cable_is_noticed && return
    done
    echo "netns: $TSUMUGI_PROVIDER: link cut: not all ranks knew within 5 s, in three tries" >&2
    exit 1
}

cable_is_noticed() {
    # A node is given up after 1.5 times this silence. The ranks end by themselves.
    TSUMUGI_SILENCE_TIMEOUT=1s TSUMUGI_GRACE_TIMEOUT=3s start 2 "$job" --role until-lost
    for _ in $(seq 600); do
        [[ $(grep -c working "$work/log") == 4 ]] && break
        sleep 0.1
    done
    if [[ $(grep -c working "$work/log") != 4 ]]; then
        cat "$work/log"
        echo "netns: $TSUMUGI_PROVIDER: not all 4 ranks worked within 60 s, before the cut" >&2
        exit 1
    fi
    # Time for the first heartbeats.
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
        echo "netns: $TSUMUGI_PROVIDER: link cut: not all ranks lost the other node" >&2
        exit 1
    fi
    # Codes from 124 on are of the time limit or of a signal.
    local code
    for code in "${codes[@]}"; do
        if ((code == 0 || code >= 124)); then
            cat "$work/log"
            echo "netns: $TSUMUGI_PROVIDER: link cut: exit codes ${codes[*]}" >&2
            exit 1
        fi
    done
    printf '%-12s link cut: all ranks knew after %d ms, and had ended after %d ms\n' \
        "$TSUMUGI_PROVIDER" "$ms" "$ended"
    ((ms <= 5000))
}

# await PATTERN COUNT: waits until COUNT lines of the log match; fails after 60 s.
await() {
    local _
    for _ in $(seq 600); do
        [[ $(grep -c "$1" "$work/log") -ge $2 ]] && return
        sleep 0.1
    done
    cat "$work/log"
    echo "netns: $TSUMUGI_PROVIDER: fewer than $2 lines match after 60 s: $1" >&2
    exit 1
}

# hold_off RANK: stops a rank while it works; `held` is its process.
hold_off() {
    await "^rank $1 pid" 1
    sleep 1
    held=$(sed -n "s/^rank $1 pid //p" "$work/log")
    kill -STOP "$held"
}

# short_pause RANK SECONDS: stops a rank for less time than the silence limit: no rank is
# given up, and all results are right.
short_pause() {
    local begin=$SECONDS over=$work/over
    rm -f "$over"
    TSUMUGI_TEST_OVER=$over start 2 "$job" --role mixture-until-told
    hold_off "$1"
    sleep "$2"
    kill -CONT "$held"
    : >"$over"
    if ! finish || grep -q 'no answer\|given up' "$work/log"; then
        cat "$work/log"
        echo "netns: $TSUMUGI_PROVIDER: rank $1 stopped for $2 s: the job failed" >&2
        exit 1
    fi
    printf '%-12s 2 nodes, %2d s: rank %d was stopped for %s s: the job went on\n' \
        "$TSUMUGI_PROVIDER" $((SECONDS - begin)) "$1" "$2"
}

# long_pause RANK SECONDS: stops a rank for longer than the silence limit, until the other
# node has given it up: all ranks get an error, the rank itself when it continues, and no
# rank crashes.
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
    # The ranks that have given it up stay until the file exists, so that the notice reaches
    # it however late it gets a core.
    await '^lost in 5 ways' 2
    : >"$over"
    finish || true
    # The rank that was given up ended by itself, and the job with it: no rank crashed.
    for code in "${codes[@]}"; do
        if ((code == 0 || code == 124 || code == 134 || code == 139)) || [[ ${codes[$1]} != 1 ]]; then
            cat "$work/log"
            echo "netns: $TSUMUGI_PROVIDER: rank $1 stopped for $2 s: exit codes ${codes[*]}" >&2
            exit 1
        fi
    done
    printf '%-12s 2 nodes, %2d s: rank %d was stopped for %s s: given up, notified, and ended\n' \
        "$TSUMUGI_PROVIDER" $((SECONDS - begin)) "$1" "$2"
}

# pause_of_a_writer RANK: stops a rank while all ranks write to ranks of the other node, until
# the other node has given its node up: from then on nothing that the paused rank or its
# neighbour writes lands there.
pause_of_a_writer() {
    local begin=$SECONDS other=$((2 - $1)) over=$work/over
    rm -f "$over"
    TSUMUGI_SILENCE_TIMEOUT=1s TSUMUGI_TEST_OVER=$over start 2 "$job" --role apart
    await working 4
    # Time for the first heartbeats.
    sleep 1
    hold_off "$1"
    await "^rank $other is apart" 1
    await "^rank $((other + 1)) is apart" 1
    # Time for writes of the neighbour, which does not know yet.
    sleep 1
    kill -CONT "$held"
    await "^tsumugi: rank $1: this rank was given up by rank $other after 1.5 s of silence" 1
    sleep 1
    : >"$over"
    finish || true
    if [[ ${codes[$1]} != 1 ]] || grep -q 'was written to' "$work/log"; then
        cat "$work/log"
        echo "netns: $TSUMUGI_PROVIDER: rank $1 stopped: memory changed, or exit codes ${codes[*]}" >&2
        exit 1
    fi
    printf '%-12s 2 nodes, %2d s: rank %d was stopped while it wrote: no memory changed\n' \
        "$TSUMUGI_PROVIDER" $((SECONDS - begin)) "$1"
}

# pause_of_a_neighbour RANK: stops a rank that is not the first of its node for longer than
# the silence limit: the first rank of the node kills it, and all ranks hear of its death.
pause_of_a_neighbour() {
    local begin=$SECONDS rank code silence="(after 1.5 s of silence)"
    TSUMUGI_SILENCE_TIMEOUT=1s TSUMUGI_GRACE_TIMEOUT=3s start 2 "$job" --role mourn
    await 'works as' 4
    hold_off "$1"
    finish || true
    if ! grep -q "^tsumugi: rank $1 on host-2: no answer, lost $silence" "$work/log"; then
        cat "$work/log"
        echo "netns: $TSUMUGI_PROVIDER: rank $1 stopped: no line says that it is lost" >&2
        exit 1
    fi
    for rank in 0 1 2; do
        code=${codes[$rank]}
        if ! grep -q "^rank $rank heard of rank $1" "$work/log" || ((code == 0 || code >= 124)); then
            cat "$work/log"
            echo "netns: $TSUMUGI_PROVIDER: rank $1 stopped: exit codes ${codes[*]}" >&2
            exit 1
        fi
    done
    if ((codes[$1] != 137)); then
        echo "netns: $TSUMUGI_PROVIDER: rank $1 stopped: exit codes ${codes[*]}" >&2
        exit 1
    fi
    printf '%-12s 2 nodes, %2d s: rank %d was stopped: the first rank of its node killed it\n' \
        "$TSUMUGI_PROVIDER" $((SECONDS - begin)) "$1"
}

# All pauses, while 8 busy loops compete for the processors.
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
    # Not over udp, where a peer that does not answer delays all others, and heartbeats too.
    [[ $TSUMUGI_PROVIDER == udp* ]] || pause_of_a_neighbour 3
    # Nor here: what libfabric has sent over udp may land late.
    if [[ $TSUMUGI_PROVIDER != udp* ]]; then
        pause_of_a_writer 2
        pause_of_a_writer 0
    fi
    kill "${loops[@]}"
    trap clean EXIT
}

# short_cut SECONDS: cuts the link for less time than the silence limit, while messages are
# on their way: no rank is given up, and all results are right.
short_cut() {
    local begin=$SECONDS pid over=$work/over
    rm -f "$over"
    TSUMUGI_TEST_OVER=$over start 2 "$job" --role mixture-until-told
    await '^rank 0 pid' 1
    sleep 1
    ip link set "$name-2v" down
    sleep "$1"
    for pid in "${ranks[@]}"; do
        if ! kill -0 "$pid" 2>/dev/null; then
            cat "$work/log"
            echo "netns: $TSUMUGI_PROVIDER: link cut for $1 s: a rank ended meanwhile" >&2
            exit 1
        fi
    done
    ip link set "$name-2v" up
    : >"$over"
    if ! finish || grep -q 'no answer\|given up' "$work/log"; then
        cat "$work/log"
        echo "netns: $TSUMUGI_PROVIDER: link cut for $1 s: the job failed" >&2
        exit 1
    fi
    printf '%-12s 2 nodes, %2d s: mixture, link cut for %s s: the job went on\n' \
        "$TSUMUGI_PROVIDER" $((SECONDS - begin)) "$1"
}

# Cuts the link until both sides have given each other up, and joins it again: the side with
# the higher number is notified, and ends. Neither side's memory changes any more, except by
# operations that were on their way when the link was cut.
long_cut() {
    local begin=$SECONDS rank code over=$work/over
    rm -f "$over"
    TSUMUGI_SILENCE_TIMEOUT=1s TSUMUGI_TEST_OVER=$over start 2 "$job" --role apart
    await working 4
    # Time for the first heartbeats.
    sleep 1
    ip link set "$name-2v" down
    await '^rank . is apart' 4
    ip link set "$name-2v" up
    await '^tsumugi: rank 2: this rank was given up by rank 0 after 1.5 s of silence' 1
    # Time for packets that are still on their way.
    sleep 1
    : >"$over"
    finish || true
    for rank in 0 1; do
        if ! grep -q "^rank $rank has seen the end" "$work/log"; then
            cat "$work/log"
            echo "netns: $TSUMUGI_PROVIDER: long cut: rank $rank ended early" >&2
            exit 1
        fi
    done
    for code in "${codes[@]}"; do
        if ((code == 0 || code == 124 || code == 134 || code == 139)) || [[ ${codes[2]} != 1 ]]; then
            cat "$work/log"
            echo "netns: $TSUMUGI_PROVIDER: long cut: exit codes ${codes[*]}" >&2
            exit 1
        fi
    done
    if ! grep -q 'rank 2, rank 3 on host-2: no answer, lost (after 1.5 s' "$work/log" ||
        ! grep -q 'rank 0, rank 1 on host-1: no answer, lost (after 1.5 s' "$work/log" ||
        grep -q 'was written to' "$work/log"; then
        cat "$work/log"
        echo "netns: $TSUMUGI_PROVIDER: long cut: no report of a loss, or memory changed" >&2
        exit 1
    fi
    printf '%-12s 2 nodes, %2d s: long cut: one side was notified, no memory changed\n' \
        "$TSUMUGI_PROVIDER" $((SECONDS - begin))
}

# bad_network SEED: a network that is slow, loses and reorders packets, by fault injection.
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

# Locks and windows of ranks on three nodes, and locks with atomics by the device. The data
# that they protect show whether they exclude each other.
locks() {
    run 3 "$job" --role locks-short
    run 3 "$job" --role locks-device
    grep 'writes under' "$work/log"
}

# mpi NAME...: C programs with libmpi_abi.so.1. Ranks that follow each other are on different
# nodes, and with five ranks a node has two or three. Each program runs with the largest number of
# ranks for which it is, and prints what it prints with MPICH on one node.
mpi() {
    local begin=$SECONDS program count seed
    mpi_build "$work/mpi" "$@"
    for program; do
        for count in $(mpi_ranks "$program"); do dealt=$count; done
        # shellcheck disable=SC2016
        start 2 sh -c 'exec "$0" >"$0.$TSUMUGI_RANK"' "$work/mpi/$program"
        if ! finish || ! grep -q 'on 2 nodes' "$work/log" ||
            ! mpi_expected "$program" "$dealt" | diff - "$work/mpi/$program.0"; then
            cat "$work/log"
            echo "netns: $TSUMUGI_PROVIDER, $program with $dealt ranks: exit codes" \
                "${codes[*]}, or it prints something else (>) than on one node (<)" >&2
            exit 1
        fi
    done
    # Random programs of 64 threads in each of two ranks.
    mpi_build_from mpi/tests/threads "$work/mpi" random
    dealt=2
    for seed in 1 2; do
        start 2 "$work/mpi/random" "$seed" 2000 64
        finish || {
            cat "$work/log"
            echo "netns: $TSUMUGI_PROVIDER, seed $seed with 64 threads: exit codes ${codes[*]}" >&2
            exit 1
        }
    done
    dealt=
    printf '%-12s 2 nodes, %2d s: %d programs of MPI, and 64 threads\n' "$TSUMUGI_PROVIDER" \
        $((SECONDS - begin)) $#
}

# The conformance suite of endpoints and the tests of the libfabric backend, with each rank
# on a node of its own.
conformance() {
    local begin=$SECONDS place="$name-1=10.94.0.1 $name-2=10.94.0.2 $name-3=10.94.0.3"
    if ! TSUMUGI_TEST_NODES=$place timeout 600 ip netns exec "$name-1" "$suite" \
        >"$work/log" 2>&1 || ! grep -q '^test result: ok\. [1-9]' "$work/log"; then
        cat "$work/log"
        echo "netns: the suite of endpoints failed between nodes" >&2
        exit 1
    fi
    printf 'tcp and udp  3 nodes, %2d s: the suite of endpoints: %d tests\n' \
        $((SECONDS - begin)) "$(grep -c '^test .* ok ' "$work/log")"
}

# Two nodes cannot reach each other when the job starts: no rank is lost.
# Not over udp, where one peer that does not answer delays all others.
late_link() {
    local begin=$SECONDS
    # All nodes reach the first one, where rank 0 is, through which ranks find each other.
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
        echo "netns: $TSUMUGI_PROVIDER: the job failed over a link that came late" >&2
        exit 1
    fi
    printf '%-12s 3 nodes, %2d s: meet, over a link that comes late\n' \
        "$TSUMUGI_PROVIDER" $((SECONDS - begin))
}

# Each rank of a ring requests the cards of the ranks that it communicates with, and no
# others: one of its neighbours is on another node, and collectives go through rank 0. The
# first rank of a node also communicates with the first ranks of the other nodes; one more
# request may fall between the two counts, if a heartbeat is due then.
ring() {
    local rank together all
    run 3 "$job" --role ring
    [[ $(grep -c 'cards:' "$work/log") == 6 ]] || { cat "$work/log" && exit 1; }
    while read -r _ rank _ together _ all _; do
        together=${together%,}
        if ((all > together + 1 + (rank % 2 == 0))) || ((rank % 2 == 1 && all > 2)) ||
            ((rank != 0 && rank % 2 == 0 && all > 4)); then
            cat "$work/log"
            echo "netns: rank $rank has requested $all cards, too many for a ring" >&2
            exit 1
        fi
    done < <(grep 'cards:' "$work/log")
}

# With an allgather of the program each rank gets all cards at once, and requests none. A
# node keeps one copy of them.
allgather() {
    mkdir "$work/gather-$TSUMUGI_PROVIDER"
    TSUMUGI_TEST_ALLGATHER=$work/gather-$TSUMUGI_PROVIDER run 3 "$job" --role ring
    if [[ $(grep -c 'cards: 0 together, 0 in all' "$work/log") != 6 ]]; then
        cat "$work/log"
        exit 1
    fi
}

# Each rank reads the memory of another rank of its node, and not its own memory at the same
# offset.
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

# bench_far OPERATIONS: `tsumugi bench far` must print its rows.
bench_far() {
    run 2 "$target/tsumugi" bench far --ops "$1"
    local row
    for row in put_bytes get_word fetch_add many_fetch_add; do
        grep -q "$row" "$work/log" || { cat "$work/log" && exit 1; }
    done
}

# pages TSUMUGI ARGUMENT...: `tsumugi bench gas` with home, requester and owner on three
# nodes. It checks that a get takes as many network operations as a raw get if the place of
# the page is cached, and at most two more if not.
pages() {
    dealt=3
    run 3 "$1" bench gas "${@:2}"
    dealt=
    if ! grep -q ' trips of .* yes$' "$work/log" || grep -q ' trips of .* no$' "$work/log"; then
        cat "$work/log"
        echo "netns: bench gas: an access takes more network operations than it may" >&2
        exit 1
    fi
}

# Arrays that one rank makes, copies of them, pages that move for balance; and histories of
# all accesses, which must be those of one memory.
moving() {
    local of_node=1
    run 3 "$job" --role pages-short
    run 3 "$job" --role moving-short
    run 3 "$job" --role histories-short
}

# churn [ROLE]...: random accesses to global memory, while arrays are made and dropped; the
# value that each word must have is known.
churn() {
    local role
    for role in "${@:-churn-short}"; do
        run 3 "$job" --role "$role"
    done
}

# Puts and gets that together take seconds on a slow link: no rank is lost.
slow_link() {
    local slow='tbf rate 200mbit burst 256kb latency 50ms'
    # shellcheck disable=SC2086
    if ! tc qdisc add dev "$name-2v" root $slow 2>/dev/null ||
        ! ip netns exec "$name-1" tc qdisc add dev eth0 root $slow; then
        left_out "netns: a slow link" "this kernel has no tbf queue"
        return
    fi
    run 2 "$job" --role bulk
    tc qdisc del dev "$name-2v" root
    ip netns exec "$name-1" tc qdisc del dev eth0 root
}

# Connections to the data port of a rank that send nothing, more than a process has
# descriptors by default: the job continues.
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
        echo "netns: a job failed beside 1,500 connections that send nothing" >&2
        exit 1
    fi
    if ! kill "$talks"; then
        echo "netns: not all of 1,500 connections were made and stayed open" >&2
        exit 1
    fi
    wait "$talks" || true
    printf '%-12s 3 nodes, %2d s: 1,500 connections that send nothing\n' \
        "$TSUMUGI_PROVIDER" $((SECONDS - begin))
}

# A path that silently loses packets of more than 700 bytes: puts and gets are lost, and
# short heartbeats alone would pass.
black_hole() {
    local begin=$SECONDS only_short='tbf rate 1gbit burst 700b latency 50ms'
    start 2 "$job" --role until-lost-beside-heartbeats
    for _ in $(seq 600); do
        [[ $(grep -c working "$work/log") == 4 ]] && break
        sleep 0.1
    done
    # Waits until the longer limit for nodes that start has passed.
    sleep 8
    # shellcheck disable=SC2086
    if ! tc qdisc add dev "$name-2v" root $only_short 2>/dev/null; then
        kill "${ranks[@]}"
        finish || true
        left_out "netns: a path that loses long packets" "this kernel has no tbf queue"
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
        echo "netns: $TSUMUGI_PROVIDER: long packets lost: not reported within 10 s ($said s)" >&2
        exit 1
    fi
    printf '%-12s 2 nodes, %2d s: long packets lost: reported after %d s\n' \
        "$TSUMUGI_PROVIDER" $((SECONDS - begin)) "$said"
}

# A rank uses another network than the others: the job ends at start, and names both.
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
        echo "netns: ranks on two networks: the job went on, or did not name the networks" >&2
        exit 1
    fi
    echo 'tcp and udp  2 nodes: ranks on two networks: the networks are named at start'
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
# figures ARGUMENT...: the rows of `tsumugi bench message` on one node, between two nodes over
# tcp, and of two MPIs over tcp. Each rank has one core and one worker, as on one node.
figures() {
    local tsumugi=$release/tsumugi peers=() line
    for_release --bin tsumugi
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
    # The MPI launchers call this script in place of ssh.
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
# Our ranks as a peer: ranks with consecutive numbers are on one node.
if [[ ${1:-} == algorithms ]]; then
    shift
    of_node=1
    if [[ ${1:-} =~ ^[0-9]+$ ]]; then
        of_node=$1
        shift
    fi
    for_release --bin tsumugi
    for node in ${TSUMUGI_TEST_RATE:+"${nodes[@]}"}; do
        limit="rate $TSUMUGI_TEST_RATE burst 64kb latency 50ms"
        # shellcheck disable=SC2086
        ip netns exec "$node" tc qdisc add dev eth0 root tbf $limit
    done
    cat >"$work/launch" <<END
#!/usr/bin/env bash
for ((rank = 0; rank < \$1; rank++)); do
    node=\$((rank / $of_node + 1))
    TSUMUGI_RANK=\$rank TSUMUGI_SIZE=\$1 TSUMUGI_MASTER=10.94.0.1:29999 TSUMUGI_NODE="node \$node" \\
        TSUMUGI_WORKERS=1 TSUMUGI_PROVIDER='tcp;ofi_rxm' \\
        ip netns exec "$name-\$node" unshare --uts sh -c 'hostname "\$0"; exec "\$@"' "host-\$node" \\
        "$release/tsumugi" bench message --serve "\$2" &
done
wait
END
    chmod +x "$work/launch"
    [[ " $* " == *" --only "* ]] || set -- --only algorithms "$@"
    "$release/tsumugi" bench message --wait 0 \
        --peer "tcp_$of_node=$work/launch N FOLDER" "$@"
    exit 0
fi
if [[ ${1:-} == pages ]]; then
    for_release --bin tsumugi
    export TSUMUGI_PROVIDER='tcp;ofi_rxm'
    limit=300
    pages "$release/tsumugi" "${@:2}"
    cat "$work/log"
    exit 0
fi
if [[ ${1:-} == readers ]]; then
    for_release --bin tsumugi
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
    # One rank on each node, so that no rank waits for a core. These links have no
    # bottleneck: with a congestion control that searches for one and paces its packets
    # (bbr), the pacing would determine the times of long copies.
    for node in "${nodes[@]}"; do
        ip netns exec "$node" sysctl -qw net.ipv4.tcp_congestion_control="${TSUMUGI_TEST_CONTROL:-reno}"
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
if [[ ${1:-} == mpi ]]; then
    shift
    (($#)) || set -- "${mpi_programs[@]}"
    TSUMUGI_PROVIDER='tcp;ofi_rxm' mpi "$@"
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
if [[ ${1:-} == writers ]]; then
    export TSUMUGI_PROVIDER='tcp;ofi_rxm'
    for _ in $(seq "${2:-1}"); do
        pause_of_a_writer 2
        pause_of_a_writer 0
        long_cut
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
    # Not over udp: the programs do many short remote accesses one after another.
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
pause_of_a_writer 2
pause_of_a_writer 0
# A network that is slow, loses and reorders packets: by fault injection, and by netem if
# the kernel has it.
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
    # No failure with CI=true: the injected faults have run.
    echo "netns: jobs over bad links of the kernel are left out: it has no netem"
fi
export TSUMUGI_PROVIDER='tcp;ofi_rxm'
run 2 "$target/tsumugi" demo --ults 100
bench_far 500
mpi "${mpi_programs[@]}"
moving
pages "$target/tsumugi" --quick --ops 64
if pgrep -f "$job --role"; then
    echo "netns: a rank still runs" >&2
    exit 1
fi
