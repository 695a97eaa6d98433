/* Ranks: 2 3. Nonblocking collectives complete in any order of their waits, between messages. */
#include "check.h"

static void program(void) {
    int values[20], other = 0;
    MPI_Request requests[20], message;
    for (int i = 0; i < 20; i++) {
        values[i] = rank + i;
        MPI_Iallreduce(MPI_IN_PLACE, values + i, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, requests + i);
    }
    MPI_Isend(&rank, 1, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD, &message);
    MPI_Recv(&other, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&message, MPI_STATUS_IGNORE);
    for (int i = 0; i < 20; i++) MPI_Wait(requests + (rank % 2 ? i : 19 - i), MPI_STATUS_IGNORE);
    ints("values", values, 20);
    ints("other", &other, 1);
}
