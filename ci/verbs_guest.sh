#!/bin/busybox sh
# Runs as /init of the guest that ci/verbs.sh boots: loads Soft-RoCE, makes the
# devices, runs the tests, and tells QEMU by a port how it went.
/bin/busybox --install -s /bin
export PATH=/bin LD_LIBRARY_PATH=/lib HOME=/ RUST_BACKTRACE=0
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev

words() { echo "$1" | tr , " "; }
say() { echo "[$(cut -d' ' -f1 /proc/uptime)] $*"; }
# QEMU exits with twice the number and one: 33 if all was well, 35 if not.
finish() {
    say "$2"
    printf "\\x$1" | dd of=/dev/port bs=1 seek=$((0xf4)) 2>/dev/null
    poweroff -f
}
# Not the one of busybox, which knows less.
ip() { /net/ip "$@"; }
fail() { finish 11 "FAILED: $*"; }
# Whether this is asked for, or everything is.
wants() { case ,$ONLY, in ,, | *,$1,*) ;; *) false ;; esac; }
# Whether jobs are all that is asked for.
is_of_jobs() {
    [ -n "$ONLY" ] || return 1
    for word in $(words "$ONLY"); do
        case $word in jobs | updates | globals | locks | homes | adopted | latency | one | lossy | pair | pages | figures) ;; *) return 1 ;; esac
    done
}
# The tests of these names, or all, on these devices.
suite() {
    is_of_jobs || VERBS_DEVICES=$1 timeout "$LIMIT" /verbs $(words $2)
}

while read -r module; do
    insmod "/lib/modules/$module.ko" || fail "module $module"
done </etc/modules
ulimit -l unlimited
ip link set lo up
export TSUMUGI_NETWORK=verbs TSUMUGI_VERBOSE=1 TSUMUGI_SPIN=0 TSUMUGI_WORKERS=1
export TSUMUGI_HEAP_BYTES=$((1 << 30)) TSUMUGI_STACK_BYTES=$((2 << 30))
export TSUMUGI_SECRET='a word that these ranks share'
port=20000
[ -z "$PAIR" ] || . /pair

# Jobs whose ranks take the ends of a wire for two nodes, or one device.
# A rank for each of these nodes, its output in /tmp/rank*.
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
        # There is no third end of the wire: that node is at the second, too.
        device=$node
        [ "$node" = c ] && device=b
        TSUMUGI_RANK=$rank TSUMUGI_NODE=$node TSUMUGI_DEVICE=${whole:-rxe_$device} \
            ${PIN:+taskset $((1 << rank))} "$@" >/tmp/rank$rank 2>&1 &
        pids="$pids $!"
    done
    (sleep "$JOB_LIMIT"; kill -9 $pids; say "too slow") 2>/dev/null &
    limit=$!
}
# Whether all ended well.
all() {
    answers=
    for pid in $pids; do
        wait "$pid"
        answers="$answers $?"
    done
    kill $limit
    [ -z "$(words "$answers" | tr -d ' 0')" ]
}
what_they_said() {
    head -c 4000 /tmp/rank*
    grep -v ":0$" $(find /sys/class/infiniband/rxe_?/ports/1/hw_counters -type f) /dev/null
}
job() {
    start "$@"
    # What is lost three times in a row is as late as what a dead rank says, one
    # packet in a million: once more then.
    if ! all && [ -n "$VERBS_LOSSY" ] && grep -q "no answer, lost" /tmp/rank*; then
        say "$*: taken for dead, and once more"
        start "$@"
        all
    fi
    [ -z "$(words "$answers" | tr -d ' 0')" ] && grep -q "ranks: $TSUMUGI_SIZE, on ${NODES:-2} nodes" /tmp/rank0 || { what_they_said; fail "$*: $answers"; }
    say "$*"
}
# Messages, and the demo: every way that bytes go.
messages() {
    job /job --role "$1"
    job /tsumugi demo --ults 50 --graph /graph
}
# One device that is its own peer.
ip link add eth0 type dummy
ip addr add 10.0.0.1/24 dev eth0
ip link set eth0 mtu 4200 up
/net/rdma link add rxe0 type rxe netdev eth0 || fail "rxe0"
say "one device"
suite rxe0 "$ONLY" || fail "one device"
is_of_jobs || timeout "$JOB_LIMIT" taskset 1 /verbs_latency rxe0 || fail "verbs_latency"
if wants one; then
    whole=rxe0
    messages mixture-short
    whole=
fi

# Two, at the ends of a wire, in one name space (Soft-RoCE does not leave the
# first): rules send what is for the other end out, though it is local.
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
/net/rdma link add rxe_a type rxe netdev va || fail "rxe_a"
/net/rdma link add rxe_b type rxe netdev vb || fail "rxe_b"
sent() { cat /sys/class/net/$1/statistics/tx_packets; }
on_the_wire() {
    local count=$(($(sent va) - before))
    say "packets on the wire: $count of one end"
    [ $count -gt 0 ] || fail "nothing went over the wire"
}
say "two devices"
before=$(sent va)
suite rxe_a,rxe_b "$ONLY" || fail "two devices"
is_of_jobs || on_the_wire

# One rank is killed in the middle: the other one hears of it in all it does.
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
        [ "$answers" = " 7 137" ] || { what_they_said; fail "one was killed: $answers"; }
    say "one was killed at $since: the other knew, and has ended"
}
# With LOUD what the next job says is shown as it comes.
loud() {
    [ -z "$LOUD" ] || (sleep 2; tail -f /tmp/rank*) &
}
# Of three ranks, two of them on one node, on one word, by the device and by
# the processors: a million of each, 20,000 with TALLY=tally-short.
updates() {
    nodes="a a b"
    loud
    JOB_LIMIT=$((4 * JOB_LIMIT)) job /quick_job --role "${TALLY:-tally}"
    grep " updates by " /tmp/rank0
    grep -q " updates by Device" /tmp/rank0 && grep -q " updates by Cpu" /tmp/rank0 || fail "the agents"
    nodes="a b"
}
# Global memory of three ranks, two of them on one node: by the processors, and
# by the device, whose atomics the words of each are.
globals() {
    nodes="a a b"
    JOB_LIMIT=$((2 * JOB_LIMIT)) job /quick_job --role global
    for agent in Cpu Device; do
        [ "$(cat /tmp/rank* | grep -c "global words by $agent: all there")" = 3 ] ||
            { what_they_said; fail "global words by $agent"; }
    done
    nodes="a b"
}
# Locks whose words the device changes, of three ranks, two of them on one node.
locks() {
    nodes="a a b"
    JOB_LIMIT=$((4 * JOB_LIMIT)) job /quick_job --role locks-device
    grep " writes under " /tmp/rank0
    # Four kinds, and all designs of windows but the tree.
    [ "$(grep -c " writes under .* by Device" /tmp/rank0)" = 7 ] || fail "the agent of locks"
    nodes="a b"
}
# Of three ranks, two of them on one node, one that stands still: where its pages
# are the device says.
homes() {
    nodes="a b b"
    JOB_LIMIT=$((2 * JOB_LIMIT)) job /quick_job --role homes
    grep " owns " /tmp/rank0
    grep -q " owns by Device" /tmp/rank0 && grep -q "while the home stood still" /tmp/rank0 || fail "homes"
    nodes="a b"
}
# A ULT's blocking calls beside the same requests by hand, in turn, each rank on
# a core.
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
    # Packets: as many as by hand. Time: the smallest median of some rounds, of
    # both, and how many times as long each turn took.
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
    ' /tmp/hand /tmp/ult || fail "more packets than by hand"
}
# Memory outside of the heap, unmapped and mapped again where it was: it goes
# without a copy, and nothing that was there before arrives.
adopted() {
    job /job --role adopted
    grep " times mapped at one place" /tmp/rank0
    grep -q "8 times shown, 0 bytes copied" /tmp/rank0 || fail "adopted memory"
    PIN=1 TSUMUGI_SPIN=${SPIN:-200} job /adopted
    grep " KiB: " /tmp/rank0
    grep -q "of 4096 KiB: .* bytes copied .4194304, 0, 0." /tmp/rank0 || fail "adopted memory is copied"
}
# Arrays whose pages move, of three ranks, each a node of its own: what all see
# of them, then what an access takes; home and owner are at the other end.
pages() {
    nodes="a b c"
    NODES=3
    for role in $(words "${ROLES:-pages-short,moving-short,histories-short}"); do
        JOB_LIMIT=$((2 * JOB_LIMIT)) job /quick_job --role $role
        [ $role != pages-short ] || grep "^pages found by Device" /tmp/rank0 || fail "the agent of pages"
    done
    loud
    JOB_LIMIT=$((4 * JOB_LIMIT)) job /quick_tsumugi bench gas --svg /tmp $(words "$BENCH")
    sed "1,/: page sizes/d" /tmp/rank0
    cat /tmp/*.svg
    [ -n "$BENCH" ] || grep -q " trips of .* yes$" /tmp/rank0 || fail "no trips"
    ! grep " trips of .* no$" /tmp/rank0 || fail "trips"
    nodes="a b"
    NODES=2
}
# Puts and gets of two ranks on one node, and of two at the ends of the wire; then
# beside them the ping-pong of each MPI, by the same devices, when those have ended.
beside() {
    timeout $((2 * JOB_LIMIT)) /quick_tsumugi bench message --only one_sided --wait 0 \
        $(words "${BENCH:---quick,--ops,20}") --peer "$1=/launch_$1 FOLDER" >/tmp/figures 2>&1
    answer=$?
    cat /tmp/figures
    [ $answer = 0 ] && ! grep -q "left out" /tmp/figures || { head -c 4000 /tmp/launched; false; }
}
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
# What starts two ranks of it, one at each end of the wire.
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
jobs() {
    say "jobs on two nodes"
    before=$(sent va)
    /tsumugi info | grep -A4 "network to other nodes"
    job /hello
    job /put_get
    job /job --role reach
    messages mixture-short
    updates
    globals
    locks
    homes
    adopted
    killed
    on_the_wire
}
for what in $(words "${ONLY:-jobs,latency}"); do
    case $what in jobs | updates | globals | locks | homes | adopted | latency | pages | figures) $what ;; esac
done

# The same wire, of whose packets one in a hundred is lost.
for device in va vb; do
    /net/tc qdisc add dev $device root netem loss 1% || fail "netem"
done
say "two devices, 1 % loss"
export VERBS_LOSSY=1
suite rxe_a,rxe_b "${ONLY:-$LOSSY}" || fail "1 % loss"
! wants lossy || messages mixture-lossy
finish 10 "PASSED"
