#!/usr/bin/env bash
# A hundred thousand random programs of messages in the simulator, then ten
# minutes of everything at random, on ULTs and OS threads. Not part of what
# a change must pass. `ci/soak.sh [seconds] [seed]`
set -euo pipefail
cd "$(dirname "$0")/.."
cargo test --release --package tsumugi-core --test sim -- --ignored soak
cargo run --release --package tsumugi-ult --example soak -- "${1:-600}" ${2+"$2"}
# Global memory at random, while arrays come and go.
for job in 'direct 4' 'offload 3' 'delegate 2'; do
    TSUMUGI_PATH=${job% *} cargo test --release --package tsumugi --test job -- --launch "${job#* }" churn-long
done
# Messages at random between four processes, by each design.
for design in mirror locked two_copy; do
    TSUMUGI_MESSAGES=$design cargo test --release --package tsumugi --test job -- --launch 4 mixture-long
done
