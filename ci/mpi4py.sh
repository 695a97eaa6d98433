#!/usr/bin/env bash
# Runs the tests of mpi4py, built from its source distribution against mpi/include/mpi.h, with
# libmpi_abi.so.1, and with MPICH's library of the same ABI beside it.
#
#   ci/mpi4py.sh            with 1, 2 and 4 ranks
#   ci/mpi4py.sh N...       with these numbers of ranks
#
# A test passes if it passes at each rank; one that skips itself does not. Of those that pass
# with the library there must be at least 1,300, and none may fail or hang. ci/mpi4py.left_out
# names what is left out. Needs network access for PyPI's mpi4py and mpich, once.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=ci/left_out.sh
. ci/left_out.sh

version=4.1.2 least=1300 limit_s=300
folder=$PWD/target/mpi4py wheels=$PWD/target/launchers
source=$folder/mpi4py-$version tests=$folder/mpi4py-$version/test
python=$folder/venv/bin/python mpich=$wheels/mpich library=$folder/library
ranks=("$@")
((${#ranks[@]})) || ranks=(1 2 4)
export RUST_BACKTRACE=0 PYTHONDONTWRITEBYTECODE=1
mkdir -p "$folder" "$wheels" "$library"

fail() {
    echo "mpi4py: $*" >&2
    exit 1
}

fetch() {
    if [[ ! -x $mpich/bin/mpiexec ]]; then
        python3 -m venv "$mpich" && timeout 120 "$mpich/bin/pip" install -q mpich==5.0.2 || return
    fi
    [[ -d $source ]] && return
    python3 -m venv "$folder/venv"
    timeout 120 "$folder/venv/bin/pip" install -q 'cython>=3.0' setuptools wheel || return
    timeout 120 "$folder/venv/bin/pip" download -q --no-binary mpi4py --no-deps \
        --no-build-isolation -d "$folder" "mpi4py==$version" || return
    tar -C "$folder" -xf "$folder/mpi4py-$version.tar.gz"
}

# The extension asks for the library by the name that the ABI gives it, so one build runs with
# both libraries. It is not optimized: the build takes a minute, and the tests no longer.
build() {
    cat >"$folder/mpicc" <<END
#!/bin/sh
exec "${CC:-cc}" -I"$PWD/mpi/include" "\$@" -L"$library" -lmpi_abi
END
    chmod +x "$folder/mpicc"
    MPICC=$folder/mpicc MPI4PY_BUILD_MPIABI=1 CFLAGS='-O0 -g0' \
        "$folder/venv/bin/pip" install -q --no-build-isolation --no-deps "$source"
}

# left_out_of MODULE: `all`, or the options that leave out some of its tests.
left_out_of() {
    awk -v module="$1" '
        /^#/ { next }
        $1 == module { print "all"; exit }
        index($1, module ".") == 1 { print "-x"; print $1 }' ci/mpi4py.left_out
}

# ends FOLDER: how each test of a module ends: the worst of all ranks.
ends() {
    awk '
        { if ($1 == "began") { began[$2]; next } }
        $1 == "failed" { worst[$2] = 3 }
        $1 == "skipped" && worst[$2] < 2 { worst[$2] = 2 }
        $1 == "passed" && worst[$2] < 1 { worst[$2] = 1 }
        END {
            split("passed skipped failed", names)
            for (name in began) if (!(name in worst)) print "hung", name
            for (name in worst) print names[worst[name]], name
        }' "$1"/[0-9]*.txt 2>/dev/null || true
}

# run WHOSE COUNT LIBRARY LAUNCHER...: runs all modules, and writes how the tests end.
run() {
    local whose=$1 count=$2 path=$3 began=$SECONDS module out options left
    shift 3
    local all=$folder/$whose.$count.txt
    : >"$all"
    for module in "$tests"/test_*.py; do
        module=$(basename "$module" .py)
        mapfile -t options < <(left_out_of "$module")
        [[ ${options[0]:-} != all ]] || continue
        out=$folder/out/$whose.$count/$module
        rm -rf "$out" && mkdir -p "$out"
        left=$((limit_s - (SECONDS - began)))
        ((left > 0)) || left=1
        LD_LIBRARY_PATH=$path timeout -k 5 "$left" "$@" -n "$count" "$python" ci/mpi4py_tests.py \
            "$tests" "$out" --no-builddir -q -i "^$module\\.py\$" "${options[@]}" \
            >"$out/log" 2>&1 || echo "ended $module" >>"$all"
        ends "$out" >>"$all"
    done
    local how
    printf '%s, %d ranks:' "$whose" "$count"
    for how in passed skipped failed hung; do
        printf ' %d %s' "$(grep -c "^$how " "$all")" "$how"
    done
    echo ", $((SECONDS - began)) s"
}

if ! fetch; then
    left_out mpi4py "pip cannot install PyPI's mpi4py or mpich"
    exit 0
fi
cargo build --quiet -p tsumugi-mpi -p tsumugi-cli
ln -sf "$PWD/target/debug/libmpi_abi.so" "$library/libmpi_abi.so.1"
ln -sf libmpi_abi.so.1 "$library/libmpi_abi.so"
"$python" -c 'import mpi4py' 2>/dev/null || build

wrong=0
for count in "${ranks[@]}"; do
    run tsumugi "$count" "$library" target/debug/tsumugi run
    run mpich "$count" "$mpich/lib" "$mpich/bin/mpiexec"
    if grep -E '^(failed|hung|ended) ' "$folder/tsumugi.$count.txt"; then
        wrong=1
    fi
    (($(grep -c '^passed ' "$folder/tsumugi.$count.txt") >= least)) || wrong=1
done
((wrong == 0)) || fail "tests fail or hang, or fewer than $least pass: $folder/out has the output"
