/* Ranks: 2. Every call that gives statuses takes none. */
#include "check.h"

static void program(void) {
    int values[6] = {0}, flag = 0, index, indices[2], count, done = 0;
    MPI_Request requests[6];
    if (rank == 0) {
        fill(values, 6, 1);
        for (int i = 0; i < 6; i++) MPI_Send(values + i, 1, MPI_INT, 1, i, MPI_COMM_WORLD);
        return;
    }
    MPI_Probe(0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < 6; i++) MPI_Irecv(values + i, 1, MPI_INT, 0, i, MPI_COMM_WORLD, requests + i);
    MPI_Wait(requests, MPI_STATUS_IGNORE);
    while (!flag) MPI_Test(requests + 1, &flag, MPI_STATUS_IGNORE);
    MPI_Waitany(1, requests + 2, &index, MPI_STATUS_IGNORE);
    while (done < 2) {
        MPI_Waitsome(2, requests + 3, &count, indices, MPI_STATUSES_IGNORE);
        done += count;
    }
    for (flag = 0; !flag;) MPI_Testany(1, requests + 5, &index, &flag, MPI_STATUS_IGNORE);
    ints("values", values, 6);
}
