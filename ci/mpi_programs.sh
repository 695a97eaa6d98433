# Sourced by scripts in ci/ that run programs of mpi/tests/programs between nodes or under other
# launchers. The library was built before: target/debug/libmpi_abi.so.

# The programs that run on each way between ranks: messages of all lengths and modes, all kinds
# of collectives, communicators, datatypes, topologies, errors.
# shellcheck disable=SC2034
mpi_programs=(p2p_lengths p2p_modes p2p_imodes p2p_any_source p2p_large_both p2p_mprobe
    p2p_many_requests p2p_persistent coll_many coll_alltoall_large coll_types coll_user_op_ordered
    comm_split comm_create_group type_gaps topo_cart_halo)

# mpi_build FOLDER NAME...: builds programs with the header of the library.
mpi_build() {
    mpi_build_from mpi/tests/programs "$@"
}

# mpi_build_from SOURCES FOLDER NAME...: the same of another folder with sources.
mpi_build_from() {
    local sources=$1 folder=$2 name
    shift 2
    mkdir -p "$folder"
    ln -sf "$PWD/target/debug/libmpi_abi.so" "$folder/libmpi_abi.so.1"
    for name; do
        [[ $folder/$name -nt $sources/$name.c ]] ||
            "${CC:-cc}" -std=gnu11 -g -pthread -I mpi/include -o "$folder/$name" "$sources/$name.c" \
                "$folder/libmpi_abi.so.1" "-Wl,-rpath,$folder"
    done
}

# mpi_ranks NAME: the numbers of ranks for which a program is.
mpi_ranks() {
    sed -nE '1s|^/\* Ranks: ([0-9 ]+)\..*|\1|p' "mpi/tests/programs/$1.c"
}

# mpi_expected NAME COUNT: what a program prints with so many ranks.
mpi_expected() {
    awk -v count="$2" '/^ranks: / { is_it = $2 == count; next } is_it' "mpi/tests/programs/$1.out"
}
