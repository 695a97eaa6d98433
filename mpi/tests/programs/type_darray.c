/* Ranks: 1. Distributed arrays: what each of four or six processes would have. */
#include "check.h"

static void show(const char *what, MPI_Datatype type, int count) {
    int array[64], in[64], length;
    MPI_Aint lower, extent;
    MPI_Status status;
    fill(array, 64, 0);
    MPI_Type_commit(&type);
    MPI_Type_size(type, &length);
    MPI_Type_get_extent(type, &lower, &extent);
    MPI_Sendrecv(array, 1, type, 0, 0, in, 64, MPI_INT, 0, 0, MPI_COMM_SELF, &status);
    say("%s %d, extent %ld", what, count, (long)extent);
    ints("", in, length / 4);
    MPI_Type_free(&type);
}
static void program(void) {
    int sizes[2] = {6, 8}, grid[2] = {2, 2}, own[2] = {2, 3}, none[2] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG};
    int block[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_BLOCK}, cyclic[2] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_CYCLIC};
    int mixed[2] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK}, half[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_NONE}, line[2] = {4, 1};
    MPI_Datatype type;
    for (int process = 0; process < 4; process++) {
        MPI_Type_create_darray(4, process, 2, sizes, block, none, grid, MPI_ORDER_C, MPI_INT, &type);
        show("block", type, process);
        MPI_Type_create_darray(4, process, 2, sizes, block, none, grid, MPI_ORDER_FORTRAN, MPI_INT, &type);
        show("block, Fortran", type, process);
        MPI_Type_create_darray(4, process, 2, sizes, cyclic, none, grid, MPI_ORDER_C, MPI_INT, &type);
        show("cyclic", type, process);
        MPI_Type_create_darray(4, process, 2, sizes, cyclic, own, grid, MPI_ORDER_C, MPI_INT, &type);
        show("cyclic by 2 and 3", type, process);
        own[0] = 4; own[1] = 5;
        MPI_Type_create_darray(4, process, 2, sizes, mixed, own, grid, MPI_ORDER_FORTRAN, MPI_INT, &type);
        show("mixed", type, process);
        own[0] = 2; own[1] = 3;
        MPI_Type_create_darray(4, process, 2, sizes, half, none, line, MPI_ORDER_C, MPI_INT, &type);
        show("rows", type, process);
    }
}
