#!/usr/bin/env bash
# Tests the libfabric backend: compares the layout of its structures with libfabric's
# headers, and runs the conformance suite and the backend's own tests over tcp and udp.
# Installs Debian's packages of libfabric if they are missing.
#
#   ci/ofi.sh layout     the layout alone: `cargo test` runs the other tests, too
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ ! -e /usr/include/rdma/fabric.h ]] ||
    ! ldconfig -p | grep 'libfabric\.so\.1' >/dev/null; then
    apt-get update -qq
    apt-get install -y -qq libfabric1 libfabric-dev libfabric-bin ||
        { echo "ofi: libfabric is missing and cannot be installed" >&2; exit 1; }
fi
export RUST_BACKTRACE=0
filter=()
[[ ${1:-} != layout ]] || filter=(ofi::sys::)
mkdir -p target
timeout 900 cargo test --package tsumugi-backends --lib -- --nocapture "${filter[@]}" | tee target/ofi.txt
# The line of the layout test may follow the name of another test in the same line.
grep -qE '[0-9]+ structures, [0-9]+ fields$' target/ofi.txt
[[ ${1:-} == layout ]] || timeout 1200 cargo test --package tsumugi-backends --test ofi
