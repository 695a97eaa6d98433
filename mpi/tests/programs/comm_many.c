/* Ranks: 2 3. Two hundred communicators at once, with messages in each. */
#include "check.h"

static void program(void) {
    MPI_Comm comms[200];
    MPI_Request requests[200];
    int values[200], wrong = 0, next = (rank + 1) % size, previous = (rank + size - 1) % size;
    for (int i = 0; i < 200; i++) MPI_Comm_dup(MPI_COMM_WORLD, comms + i);
    for (int i = 199; i >= 0; i--) MPI_Irecv(values + i, 1, MPI_INT, previous, 0, comms[i], requests + i);
    for (int i = 0; i < 200; i++) MPI_Send(&i, 1, MPI_INT, next, 0, comms[i]);
    MPI_Waitall(200, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 200; i++) {
        wrong += values[i] != i;
        MPI_Comm_free(comms + i);
    }
    say("wrong %d\n", wrong);
}
