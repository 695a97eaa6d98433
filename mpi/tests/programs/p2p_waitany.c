/* Ranks: 2. Waitany among null requests takes each message once, then says undefined. */
#include "check.h"

static void program(void) {
    int values[5] = {0}, index;
    MPI_Request requests[5];
    MPI_Status status;
    for (int i = 0; i < 5; i++) requests[i] = MPI_REQUEST_NULL;
    if (rank == 0) {
        for (int i = 1; i < 5; i += 2) {
            MPI_Recv(NULL, 0, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(&i, 1, MPI_INT, 1, i, MPI_COMM_WORLD);
        }
        return;
    }
    MPI_Irecv(values + 3, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, requests + 3);
    MPI_Irecv(values + 1, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, requests + 1);
    for (int i = 0; i < 2; i++) {
        MPI_Send(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD);
        MPI_Waitany(5, requests, &index, &status);
        say("index %d\n", index);
        status_of("status", &status, MPI_INT);
        ints("values", values, 5);
    }
    MPI_Waitany(5, requests, &index, &status);
    named("index", index);
    status_of("status", &status, MPI_INT);
}
