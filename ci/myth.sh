#!/usr/bin/env bash
# Runs MassiveThreads' own test programs on libmyth.so.0 of this project:
#
#   ci/myth.sh FOLDER     FOLDER has the sources of MassiveThreads
#
# It builds MassiveThreads and its tests in target/massivethreads, by their own header, and runs
# the same binaries on both libraries. A test that passes on MassiveThreads' library must pass on
# this one. Left out are the tests `pth_*`, which call pthreads alone. It runs the debug build,
# or the library that MYTH_LIBRARY names.
set -euo pipefail
cd "$(dirname "$0")/.."
[[ -f ${1:-}/src/myth_init.c ]] || { sed -n '2,/^set/{/^#/p}' "$0" >&2; exit 2; }
LIMIT_S=120

work=$PWD/target/massivethreads
mkdir -p "$work/ours" "$work/tests"
if [[ ! -f $work/src/.libs/libmyth.so.0 ]]; then
    cp -r "$1/." "$work"
    (cd "$work" && ./configure >configure.out && make -C src libmyth.la >make.out)
fi
library=${MYTH_LIBRARY:-}
if [[ -z $library ]]; then
    cargo build --quiet --package tsumugi-myth
    library=${CARGO_TARGET_DIR:-target}/debug/libmyth.so
fi
ln -sf "$(realpath "$library")" "$work/ours/libmyth.so.0"

# passes FOLDER PROGRAM: runs a program on the library in the folder.
passes() {
    (cd "$work/tests" && LD_LIBRARY_PATH=$1 MYTH_NUM_WORKERS=2 timeout -s KILL "$LIMIT_S" \
        "./$2.run" >"$2.out" 2>&1)
}

both=() failed=() neither=()
for source in "$work"/tests/*.c "$work"/tests/*.cc; do
    file=$(basename "$source")
    name=${file%.*}
    [[ $name != pth_* ]] || continue
    program=$work/tests/$name.run
    compiler=cc
    [[ $file != *.cc ]] || compiler=c++
    [[ $program -nt $source ]] ||
        "$compiler" -O2 -w -I"$work/include" -I"$work/src" -o "$program" "$source" \
            -L"$work/src/.libs" -lmyth -pthread
    if ! passes "$work/src/.libs" "$name"; then
        neither+=("$name")
    elif passes "$work/ours" "$name"; then
        both+=("$name")
    else
        failed+=("$name")
    fi
done
echo "pass on both libraries: ${#both[@]}: ${both[*]}"
echo "fail on MassiveThreads' own: ${#neither[@]}: ${neither[*]}"
echo "fail on this library alone: ${#failed[@]}: ${failed[*]}"
((${#failed[@]} == 0))
