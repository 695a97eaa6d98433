/* Ranks: 2. Datatypes with negative lower bounds, and several of them in a row. */
#include "check.h"

static void program(void) {
    int values[30], in[30], lengths[2] = {1, 1}, places[2] = {-2, 1};
    MPI_Datatype type;
    MPI_Aint lower, extent, true_lower, true_extent;
    fill(values, 30, 0);
    MPI_Type_indexed(2, lengths, places, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Type_get_extent(type, &lower, &extent);
    MPI_Type_get_true_extent(type, &true_lower, &true_extent);
    say("%ld %ld, %ld %ld\n", (long)lower, (long)extent, (long)true_lower, (long)true_extent);
    if (rank == 0) {
        MPI_Send(values + 5, 3, type, 1, 0, MPI_COMM_WORLD);
        MPI_Send(values + 5, 6, MPI_INT, 1, 1, MPI_COMM_WORLD);
    } else {
        MPI_Recv(in, 30, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        ints("in", in, 6);
        fill(values, 30, 100);
        MPI_Recv(values + 5, 3, type, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        ints("values", values, 20);
    }
    MPI_Type_free(&type);
}
