/* Ranks: 2 3. Collectives between messages of the same communicator that are received later. */
#include "check.h"

static void program(void) {
    int sum = rank + 1, in[3] = {0}, next = (rank + 1) % size, previous = (rank + size - 1) % size;
    MPI_Request requests[3];
    for (int i = 0; i < 3; i++) MPI_Isend(&rank, 1, MPI_INT, next, i, MPI_COMM_WORLD, requests + i);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 2; i >= 0; i--) MPI_Recv(in + i, 1, MPI_INT, previous, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    ints("in", in, 3);
    ints("sum", &sum, 1);
}
