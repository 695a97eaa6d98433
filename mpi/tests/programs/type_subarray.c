/* Ranks: 2. Parts of a matrix and of a cube, in the orders of C and of Fortran. */
#include "check.h"

static void program(void) {
    int matrix[5][6], sizes[3] = {5, 6, 2}, parts[3] = {2, 3, 1}, starts[3] = {1, 2, 1}, in[12], cube[60];
    MPI_Datatype type;
    for (int order = 0; order < 2; order++) {
        for (int dims = 1; dims <= 3; dims++) {
            MPI_Aint lower, extent, count = 1;
            for (int i = 0; i < dims; i++) count *= parts[i];
            MPI_Type_create_subarray(dims, sizes, parts, starts, order ? MPI_ORDER_FORTRAN : MPI_ORDER_C, MPI_INT, &type);
            MPI_Type_commit(&type);
            MPI_Type_get_extent(type, &lower, &extent);
            say("%d dims, order %d: %ld %ld\n", dims, order, (long)lower, (long)extent);
            fill(cube, 60, 0);
            if (rank == 0) {
                MPI_Send(cube, 1, type, 1, 0, MPI_COMM_WORLD);
            } else {
                MPI_Recv(in, 12, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                ints("in", in, count);
            }
            MPI_Type_free(&type);
        }
    }
    fill(matrix[0], 30, rank * 100);
    MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Sendrecv_replace(matrix, 1, type, !rank, 1, !rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    ints("matrix", matrix[0], 30);
    MPI_Type_free(&type);
}
