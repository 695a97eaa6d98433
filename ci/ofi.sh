#!/usr/bin/env bash
# The libfabric backend, over libfabric: installs Debian's packages if they are
# missing, compares our structures with its headers, and runs the conformance
# suite and the backend's own tests over tcp and udp.
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ ! -e /usr/include/rdma/fabric.h ]] ||
    ! ldconfig -p | grep 'libfabric\.so\.1' >/dev/null; then
    apt-get update -qq
    apt-get install -y -qq libfabric1 libfabric-dev libfabric-bin ||
        { echo "libfabric is not here and cannot be installed" >&2; exit 1; }
fi
export RUST_BACKTRACE=0
timeout 900 cargo test --package tsumugi-backends --lib -- --nocapture | tee target/ofi.txt
# It may stand behind the name of a test that ends just then.
grep -qE '[0-9]+ structures, [0-9]+ fields$' target/ofi.txt
timeout 1200 cargo test --package tsumugi-backends --test ofi | tee target/ofi.txt
