/* Ranks: 1. How datatypes were made by the functions with large counts. */
#include "check.h"

static void told(const char *what, MPI_Datatype type) {
    MPI_Count integers, addresses, counts, types;
    int combiner, values[32];
    MPI_Aint places[8];
    MPI_Count wide[32];
    MPI_Datatype of[8];
    MPI_Type_get_envelope_c(type, &integers, &addresses, &counts, &types, &combiner);
    say("%s: %d integers, %d addresses, %d counts, %d datatypes\n", what, (int)integers,
        (int)addresses, (int)counts, (int)types);
    MPI_Type_get_contents_c(type, integers, addresses, counts, types, values, places, wide, of);
    ints("integers", values, (int)integers);
    say("counts:");
    for (int i = 0; i < counts; i++) say(" %lld", (long long)wide[i]);
    say("\n");
    MPI_Type_free(&type);
}

static void program(void) {
    MPI_Datatype type;
    MPI_Count sizes[2] = {4, 6}, parts[2] = {2, 3}, starts[2] = {1, 2};
    MPI_Datatype of[2] = {MPI_INT, MPI_DOUBLE};
    int kinds[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_NONE};
    int arguments[2] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG};
    int processes[2] = {2, 1};
    MPI_Type_contiguous_c(3, MPI_INT, &type);
    told("contiguous", type);
    MPI_Type_vector_c(2, 3, 5, MPI_INT, &type);
    told("vector", type);
    MPI_Type_create_hvector_c(2, 3, 40, MPI_INT, &type);
    told("hvector", type);
    MPI_Type_indexed_c(2, parts, starts, MPI_INT, &type);
    told("indexed", type);
    MPI_Type_create_hindexed_c(2, parts, sizes, MPI_INT, &type);
    told("hindexed", type);
    MPI_Type_create_indexed_block_c(2, 3, starts, MPI_INT, &type);
    told("indexed block", type);
    MPI_Type_create_hindexed_block_c(2, 3, sizes, MPI_INT, &type);
    told("hindexed block", type);
    MPI_Type_create_struct_c(2, parts, sizes, of, &type);
    told("struct", type);
    MPI_Type_create_subarray_c(2, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &type);
    told("subarray", type);
    MPI_Type_create_darray_c(2, 1, 2, sizes, kinds, arguments, processes, MPI_ORDER_C, MPI_INT,
                             &type);
    told("darray", type);
    MPI_Type_create_resized_c(MPI_INT, 0, 16, &type);
    told("resized", type);
}
