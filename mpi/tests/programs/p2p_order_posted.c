/* Ranks: 2. A message goes to the receive that was posted first, of all that fit. */
#include "check.h"

static void program(void) {
    int values[4] = {-1, -1, -1, -1}, all[4] = {0, 1, 2, 3};
    MPI_Request requests[4];
    MPI_Status statuses[4];
    if (rank == 0) {
        MPI_Barrier(MPI_COMM_WORLD);
        for (int i = 0; i < 4; i++) MPI_Send(all + i, 1, MPI_INT, 1, i % 2, MPI_COMM_WORLD);
        return;
    }
    MPI_Irecv(values, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, requests);
    MPI_Irecv(values + 1, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, requests + 1);
    MPI_Irecv(values + 2, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, requests + 2);
    MPI_Irecv(values + 3, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, requests + 3);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Waitall(4, requests, statuses);
    ints("values", values, 4);
    for (int i = 0; i < 4; i++) status_of("status", statuses + i, MPI_INT);
}
