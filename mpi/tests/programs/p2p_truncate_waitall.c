/* Ranks: 2. One of three requests of a Waitall fails. */
#include "check.h"

static void program(void) {
    int values[6] = {0};
    MPI_Request requests[3];
    MPI_Status statuses[3];
    errors_return();
    if (rank == 0) {
        fill(values, 6, 1);
        MPI_Barrier(MPI_COMM_WORLD);
        for (int i = 0; i < 3; i++) MPI_Send(values, 2 + (i == 1), MPI_INT, 1, i, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        return;
    }
    for (int i = 0; i < 3; i++) MPI_Irecv(values + 2 * i, 2, MPI_INT, 0, i, MPI_COMM_WORLD, requests + i);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    result("waitall", MPI_Waitall(3, requests, statuses));
    result("error", statuses[1].MPI_ERROR);
    say("null %d\n", requests[1] == MPI_REQUEST_NULL);
    // The others are complete, or pending.
    result("again", MPI_Waitall(3, requests, statuses));
    ints("values", values, 2);
    ints("values", values + 4, 2);
}
