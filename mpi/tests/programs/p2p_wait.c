/* Ranks: 2. Wait of a receive and of a send, and of a null request. */
#include "check.h"

static void program(void) {
    int value = 7;
    MPI_Request request;
    MPI_Status status;
    if (rank == 0) {
        MPI_Isend(&value, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, &status);
        status_of("status", &status, MPI_INT);
    }
    say("null: %d\n", request == MPI_REQUEST_NULL);
    MPI_Wait(&request, &status);
    status_of("of null", &status, MPI_INT);
}
