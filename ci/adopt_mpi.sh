#!/usr/bin/env bash
# Installs the MPI library as a site does, and builds and runs programs with it from a folder
# outside of the source tree: by the lines of docs/mpi.md, mpicc, mpicxx, pkg-config and
# CMake's FindMPI.
#
# cmake and pkg-config are installed by ci/adopt_c.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
here=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "adopt_mpi: $*" >&2
    exit 1
}
# line WORD: the line of docs/mpi.md's shell blocks that contains the word.
line() {
    local text
    text=$(awk -v word="$1" '
        /^```/ { inside = $0 == "```sh"; next }
        inside && index($0, word) { print; exit }
    ' "$here/docs/mpi.md")
    [[ -n $text ]] || fail "docs/mpi.md has no line '$1'"
    printf '%s\n' "$text"
}
# sums COMMAND...: what it prints must be the sum of four ranks.
sums() {
    local said
    said=$(timeout 60 "$@")
    [[ $said == "the sum of 4 ranks is 6" ]] || fail "$* said: $said"
}

prefix=$work/prefix
# What a debug build of all packages has made, because other steps need the same.
cargo build --quiet --lib --bins --examples
eval "$(line 'make install-mpi' | sed "s|PREFIX=.*|PREFIX=$prefix BUILT=${CARGO_TARGET_DIR:-target}/debug|")"
export PATH=$prefix/bin:$PATH PKG_CONFIG_PATH=$prefix/lib/pkgconfig

# From here on nothing knows where the sources are.
mkdir "$work/elsewhere"
cd "$work/elsewhere"
cat >program.c <<'C'
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int rank, size, sum;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Reduce(&rank, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("the sum of %d ranks is %d\n", size, sum);
    return MPI_Finalize();
}
C
# Each constant of a handle, and each function, in an expression of C++.
{
    echo '#include <mpi.h>'
    sed -nE 's/^#define (MPI_[A-Z0-9_]+) \(\((MPI_[A-Za-z]+)\).*/\2 own_\1 = \1;/p' "$prefix/include/mpi.h"
    sed -nE 's/^ *MPI_FUNCTION\([^,]*, *([A-Za-z0-9_]+),.*/auto *const of_\1 = \&MPI_\1;/p' "$prefix/include/mpi.h"
} >names.cpp
[[ $(wc -l <names.cpp) -gt 700 ]] || fail "names.cpp has $(wc -l <names.cpp) lines"
mpicxx -std=c++17 -Wall -Wextra -Wpedantic -Werror -c names.cpp
cp program.c program.cpp

# The lines of docs/mpi.md, and the launchers.
eval "$(line 'mpicc ')"
readelf -d program | grep -q 'NEEDED.*\[libmpi_abi.so.1\]' || fail "program does not need libmpi_abi.so.1"
eval "said=\$($(line 'mpiexec '))"
[[ $said == "the sum of 4 ranks is 6" ]] || fail "mpiexec: $said"
sums mpirun -np 4 --oversubscribe ./program
sums tsumugi run -n 4 ./program
eval "$(line 'mpicxx ')"
sums mpiexec -n 4 ./program-cpp

# In steps, in a shared library, and with another compiler.
mpicc -c program.c -o "an object.o"
mpicc -cc=gcc "an object.o" -o linked
sums mpiexec -n 4 ./linked
mpicc -shared -fPIC program.c -o libprogram.so
readelf -d libprogram.so | grep -q 'NEEDED.*\[libmpi_abi.so.1\]' || fail "the library does not need libmpi_abi.so.1"
mpicc -E program.c | grep MPI_Reduce >preprocessed
mpicc --version >/dev/null
[[ $(mpicc -show -c program.c) == "cc -I$prefix/include -c program.c" ]] || fail "-show: $(mpicc -show -c program.c)"
# shellcheck disable=SC2046
cc $(mpicc -showme:compile) program.c -o shown $(mpicc -showme:link)
sums mpiexec -n 4 ./shown
[[ $(TSUMUGI_MPICC=echo mpicc -c x.c) == "-I$prefix/include -c x.c" ]]

# pkg-config.
eval "$(line 'pkg-config ')"
sums mpiexec -n 4 ./program-pc

# CMake finds the wrappers on the path.
mkdir cmake
cp program.c program.cpp cmake
cat >cmake/CMakeLists.txt <<'CMAKE'
cmake_minimum_required(VERSION 3.13)
project(program C CXX)
find_package(MPI REQUIRED)
add_executable(in_c program.c)
target_link_libraries(in_c MPI::MPI_C)
add_executable(in_cpp program.cpp)
target_link_libraries(in_cpp MPI::MPI_CXX)
CMAKE
cmake -S cmake -B cmake/build >cmake/said || { cat cmake/said; fail "CMake does not find MPI"; }
grep -q "^MPI_C_COMPILER:FILEPATH=$prefix/bin/mpicc$" cmake/build/CMakeCache.txt ||
    fail "CMake has found another MPI: $(grep ^MPI_C_COMPILER cmake/build/CMakeCache.txt)"
cmake --build cmake/build >/dev/null
sums mpiexec -n 4 cmake/build/in_c
sums mpiexec -n 4 cmake/build/in_cpp

# ULTs that call MPI: the program of docs/mpi.md.
awk '/^```c$/ { inside = 1; next } /^```$/ && inside { exit } inside' "$here/docs/mpi.md" >ults.c
eval "$(line 'mpicc ults.c')"
eval "said=\$($(line 'mpiexec -n 2') | sort)"
[[ $said == $'rank 0: 100 right numbers\nrank 1: 100 right numbers' ]] || fail "ults: $said"
# Beside MPI's functions the library has those of libtsumugi, by the same list.
nm -D --defined-only "$prefix/lib/libmpi_abi.so.1" | awk '{ print $3 }' |
    grep -E '^i?acp_|^tsumugi_' | sort >found
sed -n 's/^    \([a-z][a-z0-9_]*\);$/\1/p' "$here/capi/install/tsumugi.map" | sort >listed
diff listed found || fail "the functions of libtsumugi are not those of the list"

# What mpiexec refuses.
for wrong in "-n" "-n 2" "-strange ./program" "-n 1 ./program : -n 1 ./program"; do
    # shellcheck disable=SC2086
    if mpiexec $wrong 2>said; then fail "mpiexec $wrong has succeeded"; fi
    grep -q '^mpiexec: ' said || fail "mpiexec $wrong said: $(cat said)"
done

# Nothing is left behind.
make --silent -C "$here" uninstall-mpi uninstall PREFIX="$prefix"
[[ -z $(find "$prefix" -type f -o -type l) ]] || fail "$(find "$prefix" -type f -o -type l) are left"
echo "adopt_mpi: the installed MPI builds and runs programs of another folder"
