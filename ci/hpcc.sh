#!/usr/bin/env bash
# Builds the HPC Challenge benchmark of Debian's sources, unmodified, with the installed mpicc,
# and runs it under the installed mpiexec: HPL, PTRANS, RandomAccess, FFT and others must pass
# their own verification.
#
#   ci/hpcc.sh [RANKS]...     with these numbers of ranks (4)
#
# Sources and the reference BLAS come from Debian's archive, into target/hpcc; nothing is
# installed on the machine.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=ci/left_out.sh
. ci/left_out.sh

work=$PWD/target/hpcc prefix=$PWD/target/hpcc/prefix
mkdir -p "$work"

fail() {
    echo "hpcc: $*" >&2
    exit 1
}

# fetch: the original source of hpcc, and libblas. For the source apt has a list of its own
# here, because those of a machine often name no sources.
fetch() {
    compgen -G "$work/hpcc_*.orig.tar.gz" >/dev/null && [[ -d $work/blas ]] && return
    mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/parts"
    echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
        "http://deb.debian.org/debian bookworm main" >"$work/sources.list"
    local apt=(timeout 120 apt-get -qq -o APT::Sandbox::User=root)
    local source=("${apt[@]}" -o "Dir::Etc::SourceList=$work/sources.list"
        -o "Dir::Etc::SourceParts=$work/parts" -o "Dir::State::Lists=$work/lists"
        -o "Dir::Cache=$work/cache")
    (
        cd "$work"
        "${source[@]}" update && "${source[@]}" source --tar-only hpcc &&
            { "${apt[@]}" download libblas3 ||
                { "${apt[@]}" update && "${apt[@]}" download libblas3; }; } &&
            dpkg -x libblas3_*.deb blas
    ) >"$work/fetch.log" 2>&1
}

# run RANKS: runs in a folder of its own. Each test says itself whether it has passed.
run() {
    local ranks=$1 folder=$work/run.$1 said failed
    local rows=$((ranks < 4 ? 1 : 2))
    said=$folder/hpccoutf.txt
    rm -rf "$folder"
    mkdir -p "$folder"
    # Each line of the input begins with its value: N, NB, P and Q are on lines 6, 8, 11, 12.
    sed -e '6s/^[0-9]*/400/' -e '8s/^[0-9]*/40/' -e "11s/^[0-9]*/$rows/" \
        -e "12s/^[0-9]*/$((ranks / rows))/" "$work/hpcc/_hpccinf.txt" >"$folder/hpccinf.txt"
    (cd "$folder" && timeout 120 "$prefix/bin/mpiexec" -n "$ranks" "$work/hpcc/hpcc") ||
        fail "with $ranks ranks hpcc has failed"
    grep -qx 'Success=1' "$said" || fail "with $ranks ranks it has not succeeded: $said"
    grep -qx "CommWorldProcs=$ranks" "$said" || fail "it has not run with $ranks ranks: $said"
    # HPL, five transpositions in two kinds of time, and RandomAccess of two generators on all
    # ranks and on one.
    [[ $(grep -cE '\bPASSED\b|\(passed\)' "$said") == 15 ]] || fail "tests are missing: $said"
    failed=$(grep -iE '\bfailed\b|[1-9][0-9]* errors? ' "$said" |
        grep -vE '^ *0 tests completed and failed|\(passed\)' || true)
    [[ -z $failed ]] || fail "with $ranks ranks: $failed"
    grep -q 'Solution Validates' "$said" || fail "STREAM does not validate: $said"
    # The FFT has no verdict of its own; its round trip is exact but for rounding.
    awk -F= '$1 == "MPIFFT_maxErr" && $2 < 1e-12 { fine = 1 } END { exit !fine }' "$said" ||
        fail "the FFT is wrong: $(grep MPIFFT_maxErr "$said")"
    echo "hpcc: with $ranks ranks all tests pass"
}

if ! fetch; then
    left_out hpcc "apt cannot fetch Debian's sources: $(tail -n 1 "$work/fetch.log")"
    exit 0
fi
cargo build --quiet --lib --bins --examples
make --silent install-mpi PREFIX="$prefix" BUILT="${CARGO_TARGET_DIR:-target}/debug"

rm -rf "$work/hpcc"
mkdir "$work/hpcc"
tar -xzf "$work"/hpcc_*.orig.tar.gz -C "$work/hpcc" --strip-components 1
blas=$(find "$work/blas" -name libblas.so.3)
cat >"$work/hpcc/hpl/Make.tsumugi" <<MAKE
SHELL = /bin/sh
RM = rm -f
CD = cd
MKDIR = mkdir -p
TOPdir = ../../..
INCdir = \$(TOPdir)/include
HPLlib = \$(TOPdir)/lib/tsumugi/libhpl.a
HPL_INCLUDES = -I\$(INCdir) -I\$(INCdir)/tsumugi
HPL_LIBS = \$(HPLlib) $blas -lm
HPL_DEFS = -DAdd_ -DF77_INTEGER=int -DStringSunStyle \$(HPL_INCLUDES)
CC = $prefix/bin/mpicc
CCNOOPT = \$(HPL_DEFS)
CCFLAGS = \$(HPL_DEFS) -O1 -w
LINKER = $prefix/bin/mpicc
LINKFLAGS = -Wl,-rpath,$(dirname "$blas")
ARCHIVER = ar
ARFLAGS = r
RANLIB = echo
MAKE
make -j "$(nproc)" -C "$work/hpcc" arch=tsumugi >"$work/build.log" 2>&1 ||
    { tail "$work/build.log"; fail "it does not build"; }
for ranks in "${@:-4}"; do
    run "$ranks"
done
