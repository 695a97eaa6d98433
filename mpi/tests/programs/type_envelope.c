/* Ranks: 1. The envelope and the contents of each constructor. */
#include "check.h"

static void show(const char *what, MPI_Datatype type) {
    int integers, addresses, types, combiner, numbers[32];
    MPI_Aint places[8];
    MPI_Datatype parts[8];
    MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
    say("%s: %d %d %d, combiner %d\n", what, integers, addresses, types, combiner);
    MPI_Type_get_contents(type, 32, 8, 8, numbers, places, parts);
    ints("  integers", numbers, integers);
    for (int i = 0; i < addresses; i++) say("  place %ld\n", (long)places[i]);
    for (int i = 0; i < types; i++) {
        char name[MPI_MAX_OBJECT_NAME];
        int length;
        MPI_Type_get_envelope(parts[i], &integers, &addresses, &length, &combiner);
        MPI_Type_get_name(parts[i], name, &length);
        say("  type '%s', combiner %d\n", name, combiner);
        if (combiner != MPI_COMBINER_NAMED) MPI_Type_free(parts + i);
    }
    MPI_Type_free(&type);
}
static void program(void) {
    int lengths[2] = {1, 2}, places[2] = {4, 9}, sizes[2] = {4, 5}, parts[2] = {2, 2}, starts[2] = {1, 1};
    int kinds[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC}, arguments[2] = {MPI_DISTRIBUTE_DFLT_DARG, 2}, grid[2] = {1, 2};
    int integers, addresses, types, combiner;
    MPI_Aint offsets[2] = {16, 48};
    MPI_Datatype pair[2], type, inner;
    MPI_Type_get_envelope(MPI_INT, &integers, &addresses, &types, &combiner);
    say("named: %d %d %d, %d\n", integers, addresses, types, combiner == MPI_COMBINER_NAMED);
    MPI_Type_dup(MPI_INT, &type);
    show("dup", type);
    MPI_Type_contiguous(3, MPI_INT, &type);
    show("contiguous", type);
    MPI_Type_vector(3, 2, 4, MPI_INT, &type);
    show("vector", type);
    MPI_Type_create_hvector(3, 2, 40, MPI_INT, &type);
    show("hvector", type);
    MPI_Type_indexed(2, lengths, places, MPI_INT, &type);
    show("indexed", type);
    MPI_Type_create_hindexed(2, lengths, offsets, MPI_INT, &type);
    show("hindexed", type);
    MPI_Type_create_indexed_block(2, 3, places, MPI_INT, &type);
    show("indexed_block", type);
    MPI_Type_create_hindexed_block(2, 3, offsets, MPI_INT, &type);
    show("hindexed_block", type);
    MPI_Type_contiguous(2, MPI_SHORT, &inner);
    pair[0] = MPI_DOUBLE;
    pair[1] = inner;
    MPI_Type_create_struct(2, lengths, offsets, pair, &type);
    show("struct", type);
    MPI_Type_create_resized(inner, -4, 32, &type);
    MPI_Type_free(&inner);
    show("resized", type);
    MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &type);
    show("subarray", type);
    MPI_Type_create_darray(2, 1, 2, sizes, kinds, arguments, grid, MPI_ORDER_FORTRAN, MPI_INT, &type);
    show("darray", type);
}
