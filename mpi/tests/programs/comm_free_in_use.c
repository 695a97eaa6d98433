/* Ranks: 2. A communicator that is freed while messages use it. */
#include "check.h"

static void program(void) {
    static int value[50000];
    MPI_Comm copy;
    MPI_Request request;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    fill(value, 50000, rank == 0 ? 8 : 0);
    if (rank == 0) MPI_Isend(value, 50000, MPI_INT, 1, 0, copy, &request);
    else MPI_Irecv(value, 50000, MPI_INT, 0, 0, copy, &request);
    MPI_Comm_free(&copy);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    ints("value", value + 49998, 2);
}
