/* Ranks: 2. Requests that are freed while they run complete all the same. */
#include "check.h"

static void program(void) {
    static int big[100000];
    int small = 6;
    MPI_Request request;
    if (rank == 0) {
        fill(big, LENGTH(big), 0);
        MPI_Isend(&small, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &request);
        MPI_Request_free(&request);
        say("null %d\n", request == MPI_REQUEST_NULL);
        MPI_Isend(big, LENGTH(big), MPI_INT, 1, 1, MPI_COMM_WORLD, &request);
        MPI_Request_free(&request);
        MPI_Recv(NULL, 0, MPI_INT, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return;
    }
    MPI_Recv(&small, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(big, LENGTH(big), MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(NULL, 0, MPI_INT, 0, 2, MPI_COMM_WORLD);
    say("%d %d %d\n", small, big[1], big[99999]);
}
