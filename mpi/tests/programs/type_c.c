/* Ranks: 1. Datatypes that were made with counts move the same data. */
#include "check.h"

static void show(const char *what, MPI_Datatype type) {
    int array[60], in[60], length;
    fill(array, 60, 0);
    MPI_Type_commit(&type);
    MPI_Type_size(type, &length);
    MPI_Sendrecv(array, 1, type, 0, 0, in, 60, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    ints(what, in, length / 4);
    MPI_Type_free(&type);
}
static void program(void) {
    MPI_Count lengths[2] = {1, 2}, places[2] = {4, 9}, offsets[2] = {40, 8}, sizes[2] = {4, 5}, parts[2] = {2, 3}, starts[2] = {1, 1};
    int kinds[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC}, arguments[2] = {MPI_DISTRIBUTE_DFLT_DARG, 2}, grid[2] = {1, 2};
    MPI_Datatype type, pair[2] = {MPI_INT, MPI_FLOAT};
    MPI_Type_contiguous_c(3, MPI_INT, &type);
    show("contiguous", type);
    MPI_Type_vector_c(3, 2, 4, MPI_INT, &type);
    show("vector", type);
    MPI_Type_create_hvector_c(3, 2, 40, MPI_INT, &type);
    show("hvector", type);
    MPI_Type_indexed_c(2, lengths, places, MPI_INT, &type);
    show("indexed", type);
    MPI_Type_create_hindexed_c(2, lengths, offsets, MPI_INT, &type);
    show("hindexed", type);
    MPI_Type_create_indexed_block_c(2, 3, places, MPI_INT, &type);
    show("indexed_block", type);
    MPI_Type_create_hindexed_block_c(2, 3, offsets, MPI_INT, &type);
    show("hindexed_block", type);
    pair[1] = MPI_INT;
    MPI_Type_create_struct_c(2, lengths, offsets, pair, &type);
    show("struct", type);
    MPI_Type_create_resized_c(MPI_INT, -4, 32, &type);
    show("resized", type);
    MPI_Type_create_subarray_c(2, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &type);
    show("subarray", type);
    MPI_Type_create_darray_c(2, 1, 2, sizes, kinds, arguments, grid, MPI_ORDER_C, MPI_INT, &type);
    show("darray", type);
}
