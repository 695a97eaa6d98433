# The part of ci/verbs_guest.sh for two guests on a wire between two QEMUs, sourced if the
# kernel's command line has PAIR, the rank of this guest. Runs the conformance suite, whose
# ranks with odd numbers are in the second guest, and jobs of two ranks, one in each guest.
# ci/verbs.sh kills the second guest in the middle of the last job.

other=$((1 - PAIR))
ip addr add 10.0.2.$((PAIR + 1))/24 dev eth0
ip link set eth0 up
/net/rdma link add rxe0 type rxe netdev eth0 || fail "cannot make the device rxe0"
# Waits until the other guest answers, so that both know each other's hardware address.
for _ in $(seq 300); do
    ping -c 1 -W 1 10.0.2.$((other + 1)) >/dev/null 2>&1 && break
done
hostname guest$PAIR
export TSUMUGI_RANK=$PAIR TSUMUGI_SIZE=2

# begin COMMAND...: starts the rank of this guest; the other guest starts its own as soon as
# it has come as far.
begin() {
    port=$((port + 1))
    export TSUMUGI_MASTER=10.0.2.1:$port
    timeout -s KILL "$JOB_LIMIT" "$@" >/tmp/rank 2>&1 &
    rank=$!
}
# half COMMAND...: runs the rank of this guest to its end.
half() {
    begin "$@"
    wait $rank || fail "$*: exit code $? $(head -c 4000 /tmp/rank)"
    say "$*"
}
say "two guests: rank $PAIR"
# The conformance suite: the second guest starts ranks for the first one, until that one
# connects to port 7001.
export VERBS_DEVICES=rxe0
if [ "$PAIR" = 0 ]; then
    # The other guest may boot more slowly.
    until nc 10.0.2.2 7000 </dev/null >/dev/null 2>&1; do sleep 0.1; done
    TSUMUGI_TEST_AWAY="nc 10.0.2.2 7000" timeout "$LIMIT" /verbs $(words "$SUITE") ||
        fail "the suite in two guests"
    until nc 10.0.2.2 7001 </dev/null; do sleep 0.1; done
else
    nc -ll -p 7000 -e /peer &
    nc -l -p 7001 </dev/null
fi
half /hello
half /put_get
half /job --role reach
half /job --role mixture-short
half /tsumugi demo --ults 50 --graph /graph
begin /job --role until-lost
until grep -q working /tmp/rank; do
    sleep 0.1
    [ -d /proc/$rank ] || fail "until-lost: $(head -c 4000 /tmp/rank)"
done
sleep 2
say "in the middle"
while [ -d /proc/$rank ] && ! grep -q "^lost in 5 ways" /tmp/rank; do
    sleep 0.1
done
say "the other guest is lost"
wait $rank
[ $? = 7 ] && grep -q "rank $other .*no answer, lost" /tmp/rank || fail "$(head -c 4000 /tmp/rank)"
finish 10 "PASSED"
