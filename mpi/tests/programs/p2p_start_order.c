/* Ranks: 2. Waitany and Waitsome take persistent requests, which become inactive. */
#include "check.h"

static void program(void) {
    int values[3] = {0}, index, count, indices[3], out[3];
    MPI_Request requests[3];
    MPI_Status status;
    fill(out, 3, 20);
    if (rank == 0) {
        for (int i = 0; i < 3; i++) {
            MPI_Recv(NULL, 0, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(out + i, 1, MPI_INT, 1, i, MPI_COMM_WORLD);
        }
        return;
    }
    for (int i = 0; i < 3; i++) MPI_Recv_init(values + i, 1, MPI_INT, 0, i, MPI_COMM_WORLD, requests + i);
    MPI_Startall(3, requests);
    for (int i = 0; i < 3; i++) {
        MPI_Send(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD);
        if (i % 2) {
            MPI_Waitsome(3, requests, &count, indices, &status);
            say("waitsome %d, index %d\n", count, indices[0]);
        } else {
            MPI_Waitany(3, requests, &index, &status);
            say("waitany %d\n", index);
        }
        ints("values", values, 3);
    }
    MPI_Waitany(3, requests, &index, &status);
    named("waitany", index);
    for (int i = 0; i < 3; i++) {
        say("kept %d\n", requests[i] != MPI_REQUEST_NULL);
        MPI_Request_free(requests + i);
    }
}
