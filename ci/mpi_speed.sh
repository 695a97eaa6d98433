#!/usr/bin/env bash
# Measures libmpi_abi.so.1 beside MPICH and Open MPI, all by turns in one run of
# `tsumugi bench message`: half round trips, the rate of short messages, and collectives of 2 to
# 64 ranks. Ours and MPICH run one binary, which MPICH's mpicc_abi compiles.
#
#   ci/mpi_speed.sh [ARGUMENTS]    those of `tsumugi bench message`, such as --quick --wait 0
#                                  --only rate8
#
# Ends with a table of the medians in ns, the 95 % interval of ours, and the ratios of ours to
# the peers' (below 1: ours is faster). A prefix `chrt -f 10` keeps other programs away from
# rows of 2 ranks; more ranks than cores then hang with a library that never yields.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=$PWD/target/mpi_speed release=${CARGO_TARGET_DIR:-$PWD/target}/release
mkdir -p "$folder"
cargo build --quiet --release --package tsumugi-mpi --package tsumugi-cli
ln -sf "$release/libmpi_abi.so" "$folder/libmpi_abi.so.1"
program=$folder/message peers=()
while read -r name command; do
    case $name in
    mpich)
        mpich=${command%% *}
        "$(dirname "$mpich")/mpicc_abi" -O3 -o "$program" benches/compare/peers/message.c
        peers+=(--peer "mpi=env LD_LIBRARY_PATH=$folder $release/tsumugi run -n N $program FOLDER"
            --peer "mpich=$mpich -bind-to none -n N $program FOLDER")
        ;;
    openmpi) peers+=(--peer "openmpi=$command") ;;
    esac
done < <(ci/peers.sh message)
[[ ${#peers[@]} -gt 0 ]] || { echo "mpi_speed: no peer can be installed" >&2; exit 1; }

"$release/tsumugi" bench message "${peers[@]}" --csv "$folder/rows.csv" "$@"
echo
# Fields: figure,system,name,params,unit,n,min,median,low,high,...
awk -F, '
    NR > 1 {
        row = $3 " " $4
        if (!(row in seen)) { seen[row] = 1; rows[++count] = row }
        median[$2, row] = $8; low[$2, row] = $9; high[$2, row] = $10
    }
    function ratio(peer, row) {
        if (!((peer, row) in median) || median[peer, row] == 0) return "-"
        return sprintf("%.2f", median["mpi", row] / median[peer, row])
    }
    END {
        printf "%-46s %10s %23s %9s %9s\n", "row", "median ns", "95 % interval", "of mpich", "of openmpi"
        for (at = 1; at <= count; at++) {
            row = rows[at]
            if (("mpi", row) in median)
                printf "%-46s %10.0f %11.0f..%10.0f %9s %9s\n", row, median["mpi", row],
                    low["mpi", row], high["mpi", row], ratio("mpich", row), ratio("openmpi", row)
        }
    }' "$folder/rows.csv"
