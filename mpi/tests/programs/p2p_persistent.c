/* Ranks: 1 2 3. Persistent requests around the ring, three times. */
#include "check.h"

static void program(void) {
    int next = (rank + 1) % size, previous = (rank + size - 1) % size, out, in;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    MPI_Recv_init(&in, 1, MPI_INT, previous, 5, MPI_COMM_WORLD, requests);
    MPI_Send_init(&out, 1, MPI_INT, next, 5, MPI_COMM_WORLD, requests + 1);
    for (int round = 0; round < 3; round++) {
        out = 100 * round + rank;
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, statuses);
        ints("in", &in, 1);
        status_of("status", statuses, MPI_INT);
        say("active handles: %d\n", requests[0] != MPI_REQUEST_NULL && requests[1] != MPI_REQUEST_NULL);
    }
    MPI_Request_free(requests);
    MPI_Request_free(requests + 1);
    say("null: %d\n", requests[0] == MPI_REQUEST_NULL);
}
