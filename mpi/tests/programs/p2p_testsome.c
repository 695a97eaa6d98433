/* Ranks: 2. Testsome finds nothing, then all, then only null requests. */
#include "check.h"

static void program(void) {
    int values[3], indices[3], count, total = 0;
    MPI_Request requests[3];
    MPI_Status statuses[3];
    if (rank == 0) {
        MPI_Barrier(MPI_COMM_WORLD);
        for (int i = 0; i < 3; i++) MPI_Send(&i, 1, MPI_INT, 1, i, MPI_COMM_WORLD);
        return;
    }
    for (int i = 0; i < 3; i++) MPI_Irecv(values + i, 1, MPI_INT, 0, i, MPI_COMM_WORLD, requests + i);
    MPI_Testsome(3, requests, &count, indices, statuses);
    named("before", count);
    MPI_Barrier(MPI_COMM_WORLD);
    while (total < 3) {
        MPI_Testsome(3, requests, &count, indices, MPI_STATUSES_IGNORE);
        total += count;
    }
    ints("values", values, 3);
    MPI_Testsome(3, requests, &count, indices, statuses);
    named("after", count);
}
