#!/bin/busybox sh
# Runs as /init of the guest that ci/verbs.sh boots: loads Soft-RoCE, makes the devices, runs
# the tests, and writes the result to a port of QEMU, which ends with it.
/bin/busybox --install -s /bin
export PATH=/bin LD_LIBRARY_PATH=/lib HOME=/ RUST_BACKTRACE=0
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev

words() { echo "$1" | tr , " "; }
say() { echo "[$(cut -d' ' -f1 /proc/uptime)] $*"; }
# finish NUMBER TEXT: QEMU exits with twice the number plus one: 33 if all tests passed, 35 if
# not.
finish() {
    say "$2"
    printf "\\x$1" | dd of=/dev/port bs=1 seek=$((0xf4)) 2>/dev/null
    poweroff -f
}
# iproute2's ip, which can do more than busybox's.
ip() { /net/ip "$@"; }
fail() { finish 11 "FAILED: $*"; }
# wants PART: whether this part is requested, or all are.
wants() { case ,$ONLY, in ,, | *,$1,*) ;; *) false ;; esac; }
# Whether only jobs are requested, and no tests of the backend.
is_of_jobs() {
    [ -n "$ONLY" ] || return 1
    for word in $(words "$ONLY"); do
        case $word in jobs | memory | updates | globals | locks | homes | mpi | adopted | latency | one | lossy | pair | pages | figures) ;; *) return 1 ;; esac
    done
}
# suite DEVICES NAMES: runs the tests of the backend with these names, or all, on these
# devices.
suite() {
    is_of_jobs || VERBS_DEVICES=$1 timeout "$LIMIT" /verbs $(words $2)
}

while read -r module; do
    insmod "/lib/modules/$module.ko" || fail "cannot load the module $module"
done </etc/modules
ulimit -l unlimited
ip link set lo up
export TSUMUGI_NETWORK=verbs TSUMUGI_VERBOSE=on TSUMUGI_SPIN=0 TSUMUGI_WORKERS=1
export TSUMUGI_HEAP_BYTES=$((1 << 30)) TSUMUGI_STACK_BYTES=$((2 << 30))
export TSUMUGI_SECRET='a word that these ranks share'
port=20000
[ -z "$PAIR" ] || . /pair

# Jobs have a rank for each word of `nodes`, with its output in /tmp/rank*. A node uses the
# device at its end of the wire, or all use the one device `whole`.
nodes="a b"
whole=
start() {
    port=$((port + 1))
    rm -f /tmp/rank*
    set_size() { TSUMUGI_SIZE=$#; }
    set_size $nodes
    export TSUMUGI_SIZE TSUMUGI_MASTER=127.0.0.1:$port
    pids=
    for node in $nodes; do
        rank=$(words "$pids" | wc -w)
        # The wire has two ends: node c uses the device of node b.
        device=$node
        [ "$node" = c ] && device=b
        TSUMUGI_RANK=$rank TSUMUGI_NODE=$node TSUMUGI_DEVICE=${whole:-rxe_$device} \
            ${PIN:+taskset $((1 << rank))} "$@" >/tmp/rank$rank 2>&1 &
        pids="$pids $!"
    done
    (sleep "$JOB_LIMIT"; kill -9 $pids; say "killed after $JOB_LIMIT s: $*") 2>/dev/null &
    limit=$!
}
# Waits for all ranks; succeeds if all of them did.
all() {
    answers=
    for pid in $pids; do
        wait "$pid"
        answers="$answers $?"
    done
    kill $limit
    [ -z "$(words "$answers" | tr -d ' 0')" ]
}
# Prints the output of the ranks, and the counters of the devices.
what_they_said() {
    head -c 4000 /tmp/rank*
    grep -v ":0$" $(find /sys/class/infiniband/rxe_?/ports/1/hw_counters -type f) /dev/null
}
# job COMMAND...: runs a job, which must succeed.
job() {
    start "$@"
    # On a lossy wire one packet in a million is lost three times in a row, and its sender
    # is given up: such a job runs once more.
    if ! all && [ -n "$VERBS_LOSSY" ] && grep -q "no answer, lost" /tmp/rank*; then
        say "$*: a rank was given up on the lossy wire: once more"
        start "$@"
        all
    fi
    [ -z "$(words "$answers" | tr -d ' 0')" ] && grep -q "ranks: $TSUMUGI_SIZE, on ${NODES:-2} nodes" /tmp/rank0 || { what_they_said; fail "$*: $answers"; }
    say "$*"
}
# messages ROLE: messages, and the demo.
messages() {
    job /job --role "$1"
    job /tsumugi demo --ults 50 --graph /graph
}
# One device, which is its own peer.
ip link add eth0 type dummy
ip addr add 10.0.0.1/24 dev eth0
ip link set eth0 mtu 4200 up
/net/rdma link add rxe0 type rxe netdev eth0 || fail "cannot make the device rxe0"
say "one device"
suite rxe0 "$ONLY" || fail "tests on one device"
is_of_jobs || timeout "$JOB_LIMIT" taskset 1 /verbs_latency rxe0 || fail "verbs_latency"
if wants one; then
    whole=rxe0
    messages mixture-short
    whole=
fi

# Two devices at the ends of a wire, both in the first network namespace, since Soft-RoCE
# supports no other: rules route packets for the other end over the wire, although its
# address is local.
ip link add va type veth peer name vb
ip addr add 10.0.1.1/32 dev va
ip addr add 10.0.1.2/32 dev vb
for device in all va vb default; do
    conf=/proc/sys/net/ipv4/conf/$device
    echo 0 >$conf/rp_filter
    echo 1 >$conf/accept_local
    echo 1 >$conf/arp_ignore
    echo 2 >$conf/arp_announce
done
ip link set va mtu 4200 up
ip link set vb mtu 4200 up
ip rule add pref 100 lookup local
ip rule add pref 10 iif va lookup local
ip rule add pref 11 iif vb lookup local
ip route add 10.0.1.2 dev va table 5
ip route add 10.0.1.1 dev vb table 6
ip rule add pref 20 from 10.0.1.1 to 10.0.1.2 lookup 5
ip rule add pref 21 from 10.0.1.2 to 10.0.1.1 lookup 6
ip rule del pref 0
/net/rdma link add rxe_a type rxe netdev va || fail "cannot make the device rxe_a"
/net/rdma link add rxe_b type rxe netdev vb || fail "cannot make the device rxe_b"
sent() { cat /sys/class/net/$1/statistics/tx_packets; }
# Fails if the jobs since `before` was set sent no packet over the wire.
on_the_wire() {
    local count=$(($(sent va) - before))
    say "one end sent $count packets over the wire"
    [ $count -gt 0 ] || fail "no packet went over the wire"
}
say "two devices"
before=$(sent va)
suite rxe_a,rxe_b "$ONLY" || fail "tests on two devices"
is_of_jobs || on_the_wire

# A rank is killed while it works: all waiting operations of the other rank fail.
killed() {
    start /job --role until-lost
    for _ in $(seq 300); do
        [ "$(cat /tmp/rank0 /tmp/rank1 | grep -c working)" = 2 ] && break
        sleep 0.1
    done
    sleep 2
    kill -9 ${pids##* }
    local since
    since=$(cut -d' ' -f1 /proc/uptime)
    all
    grep -q "^lost in 5 ways" /tmp/rank0 && grep -q "rank 1 .*no answer, lost" /tmp/rank0 &&
        [ "$answers" = " 7 137" ] || { what_they_said; fail "a rank was killed: $answers"; }
    say "a rank was killed at $since: the other one knew, and ended"
}
# With LOUD the output of the next job is shown while it runs.
loud() {
    [ -z "$LOUD" ] || (sleep 2; tail -f /tmp/rank*) &
}
# Three ranks, two of them on one node, update one word: by the device and by processors, a
# million times each; 20,000 times with TALLY=tally-short.
updates() {
    nodes="a a b"
    loud
    JOB_LIMIT=$((4 * JOB_LIMIT)) job /quick_job --role "${TALLY:-tally}"
    grep " updates by " /tmp/rank0
    grep -q " updates by Device" /tmp/rank0 && grep -q " updates by Cpu" /tmp/rank0 || fail "updates: not by both agents"
    nodes="a b"
}
# Global memory of three ranks, two of them on one node: with atomics by processors, and
# with atomics by the device.
globals() {
    nodes="a a b"
    JOB_LIMIT=$((2 * JOB_LIMIT)) job /quick_job --role global
    for agent in Cpu Device; do
        [ "$(cat /tmp/rank* | grep -c "global words by $agent: all there")" = 3 ] ||
            { what_they_said; fail "global words by $agent"; }
    done
    nodes="a b"
}
# Locks with atomics by the device, of three ranks, two of them on one node.
locks() {
    nodes="a a b"
    JOB_LIMIT=$((4 * JOB_LIMIT)) job /quick_job --role locks-device
    grep " writes under " /tmp/rank0
    # Four kinds of locks, and three of the four designs of windows: not the tree.
    [ "$(grep -c " writes under .* by Device" /tmp/rank0)" = 7 ] || fail "locks: not all 7 by the device"
    nodes="a b"
}
# Pages of three ranks, two of them on one node. One rank is stopped: the device serves the
# directory of the pages whose home it is.
homes() {
    nodes="a b b"
    JOB_LIMIT=$((2 * JOB_LIMIT)) job /quick_job --role homes
    grep " owns " /tmp/rank0
    grep -q " owns by Device" /tmp/rank0 && grep -q "while the home stood still" /tmp/rank0 || fail "homes: no such result"
    nodes="a b"
}
# Programs of MPI with a rank at each end of the wire, and with two ranks at one end. They print
# what they print on one node.
mpi() {
    local expected count
    for nodes in "a b" "a b a"; do
        count=$(words "$nodes" | wc -w)
        for expected in /mpi/*.out; do
            awk -v count="$count" '/^ranks: / { is_it = $2 == count; next } is_it' "$expected" >/tmp/expected
            [ -s /tmp/expected ] || continue
            job sh -c 'exec "$0" >/tmp/said$TSUMUGI_RANK' "${expected%.out}"
            cmp /tmp/expected /tmp/said0 || { cat /tmp/said0; fail "$expected: $nodes"; }
        done
    done
    nodes="a b"
}
# Blocking calls of a ULT, and the same requests posted by hand, in turns; each rank has a
# core.
latency() {
    say "latency"
    rm -f /tmp/hand /tmp/ult
    local turn
    for turn in 1 2 3 4 5; do
        timeout "$JOB_LIMIT" taskset 1 /verbs_latency rxe_a,rxe_b 3 >>/tmp/hand || fail "verbs_latency: $(cat /tmp/hand)"
        PIN=1 TSUMUGI_SPIN=${SPIN:-200} job /device
        cat /tmp/rank0 >>/tmp/ult
    done
    tail -n 9 /tmp/hand
    tail -n 16 /tmp/ult
    # The number of packets must not exceed that by hand. The times are medians; each turn
    # gives the ratio of a ULT's to that by hand.
    awk '
        FNR == NR && / packets$/ { wire[$1] = $4 }
        FNR == NR && / p50 / { hand[$1, ++turns[$1]] = $11 }
        FNR == NR { next }
        / packets$/ {
            if (!told[$1]++) printf "%-9s of a ULT: %s packets, by hand %s\n", $1, $2, wire[$1]
            if ($2 > wire[$1] + 0.1) bad = 1
        }
        / p50 / {
            ratio = $7 / hand[$1, ++turn[$1]]
            for (at = turn[$1]; at > 1 && sorted[$1, at - 1] > ratio; at--)
                sorted[$1, at] = sorted[$1, at - 1]
            sorted[$1, at] = ratio
            all[$1] = all[$1] sprintf("  %.2f of %.2f us", $7, hand[$1, turn[$1]])
        }
        END {
            for (what in turn)
                printf "%-9s of a ULT: %.2f times by hand (%.2f to %.2f):%s\n", what,
                    sorted[what, (turn[what] + 1) / 2], sorted[what, 1], sorted[what, turn[what]], all[what]
            exit bad
        }
    ' /tmp/hand /tmp/ult || fail "latency: a ULT's calls send more packets"
}
# Memory outside of the heap is unmapped, and other memory is mapped at its place: puts send
# the new content, without a copy.
adopted() {
    job /job --role adopted
    grep " times mapped at one place" /tmp/rank0
    grep -q "8 times shown, 0 bytes copied" /tmp/rank0 || fail "adopted: bytes were copied"
    PIN=1 TSUMUGI_SPIN=${SPIN:-200} job /adopted
    grep " KiB: " /tmp/rank0
    grep -q "of 4096 KiB: .* bytes copied .4194304, 0, 0." /tmp/rank0 || fail "adopted: adopted memory was copied"
}
# Arrays whose pages move, of three ranks, each a node of its own: tests of them, then the
# times of accesses; home and owner are at the other end of the wire.
pages() {
    nodes="a b c"
    NODES=3
    for role in $(words "${ROLES:-pages-short,moving-short,histories-short}"); do
        JOB_LIMIT=$((2 * JOB_LIMIT)) job /quick_job --role $role
        [ $role != pages-short ] || grep "^pages found by Device" /tmp/rank0 || fail "pages: their directory is not the device's"
    done
    loud
    JOB_LIMIT=$((4 * JOB_LIMIT)) job /quick_tsumugi bench gas --svg /tmp $(words "$BENCH")
    sed "1,/: page sizes/d" /tmp/rank0
    cat /tmp/*.svg
    [ -n "$BENCH" ] || grep -q " trips of .* yes$" /tmp/rank0 || fail "bench gas: no row of trips"
    ! grep " trips of .* no$" /tmp/rank0 || fail "bench gas: an access takes too many trips"
    nodes="a b"
    NODES=2
}
# beside NAME: `tsumugi bench message` with one peer, which /launch_NAME starts.
beside() {
    timeout $((2 * JOB_LIMIT)) /quick_tsumugi bench message --only one_sided --wait 0 \
        $(words "${BENCH:---quick,--ops,20}") --peer "$1=/launch_$1 FOLDER" >/tmp/figures 2>&1
    answer=$?
    cat /tmp/figures
    [ $answer = 0 ] && ! grep -q "left out" /tmp/figures || { head -c 4000 /tmp/launched; false; }
}
# Puts and gets of two ranks on one node, and of two at the ends of the wire; then the
# ping-pong of each MPI over the same devices.
figures() {
    cat >/launch_tsumugi_verbs <<END
#!/bin/sh
rank=0
for node in a b; do
    TSUMUGI_RANK=\$rank TSUMUGI_SIZE=2 TSUMUGI_MASTER=127.0.0.1:29999 TSUMUGI_SPIN=200 \\
        TSUMUGI_NODE=\$node TSUMUGI_DEVICE=rxe_\$node \\
        /quick_tsumugi bench message --serve "\$1" >>/tmp/launched 2>&1 &
    rank=1
done
wait
END
    chmod +x /launch_tsumugi_verbs
    before=$(sent va)
    beside tsumugi_verbs || fail "figures: $answer"
    on_the_wire
    [ -e /etc/mpis ] || return 0
    mkdir -p /dev/shm
    mount -t tmpfs shm /dev/shm
    hostname guest
    echo "127.0.0.1 localhost guest" >/etc/hosts
    while read -r mpi; do
        name=${mpi##*/}
        "launch_$name" >"/launch_${name}_verbs"
        chmod +x "/launch_${name}_verbs"
        beside "${name}_verbs" || say "no figures of $name: $answer"
    done </etc/mpis
}
# Prints a script that starts two ranks of the MPI, one at each end of the wire.
launch_mpich() {
    cat <<END
#!/bin/sh
exec "$mpi/bin/mpiexec.hydra" -launcher fork -bind-to none -genv MPIR_CVAR_NOLOCAL 1 \\
    -genv UCX_TLS rc,self \\
    -n 1 -env UCX_NET_DEVICES rxe_a:1 "$mpi/message" "\$1" : \\
    -n 1 -env UCX_NET_DEVICES rxe_b:1 "$mpi/message" "\$1" >>/tmp/launched 2>&1
END
}
launch_openmpi() {
    cat <<END
#!/bin/sh
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 UCX_TLS=rc,self
exec "$mpi/bin/mpiexec" --oversubscribe --bind-to none \\
    --mca pml ucx --mca pml_ucx_tls any --mca pml_ucx_devices any \\
    -n 1 -x UCX_NET_DEVICES=rxe_a:1 "$mpi/message" "\$1" : \\
    -n 1 -x UCX_NET_DEVICES=rxe_b:1 "$mpi/message" "\$1" >>/tmp/launched 2>&1
END
}
# Two ranks of one node, each on a core beside a memory node of its own.
memory() {
    [ "$(cat /sys/devices/system/node/online)" = 0-1 ] || fail "memory: the guest has one memory node"
    nodes="a a"
    PIN=1 start /job --role memory-nodes
    all || { what_they_said; fail "memory: $answers"; }
    grep -h "memory node" /tmp/rank?
    for rank in 0 1; do
        grep -q "rank $rank: all of its pages lie on memory node $rank" /tmp/rank$rank || fail "memory: rank $rank"
    done
    nodes="a b"
}
jobs() {
    say "jobs on two nodes"
    before=$(sent va)
    /tsumugi info --measure | grep -A4 "network to other nodes"
    job /hello
    memory
    job /put_get
    job /job --role reach
    messages mixture-short
    updates
    globals
    locks
    homes
    mpi
    adopted
    killed
    on_the_wire
}
for what in $(words "${ONLY:-jobs,latency}"); do
    case $what in jobs | memory | updates | globals | locks | homes | mpi | adopted | latency | pages | figures) $what ;; esac
done

# The same wire, which now loses one packet in a hundred.
for device in va vb; do
    /net/tc qdisc add dev $device root netem loss 1% || fail "cannot add netem to $device"
done
say "two devices, 1 % loss"
export VERBS_LOSSY=1
suite rxe_a,rxe_b "${ONLY:-$LOSSY}" || fail "tests on two devices, 1 % loss"
! wants lossy || messages mixture-lossy
finish 10 "PASSED"
