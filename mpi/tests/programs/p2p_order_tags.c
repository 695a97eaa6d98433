/* Ranks: 2. Messages are received in another order of tags than they were sent. */
#include "check.h"

static void program(void) {
    int value;
    MPI_Request requests[8];
    int values[8];
    fill(values, 8, 50);
    if (rank == 0) {
        for (int i = 0; i < 8; i++) MPI_Isend(values + i, 1, MPI_INT, 1, i / 2, MPI_COMM_WORLD, requests + i);
        MPI_Waitall(8, requests, MPI_STATUSES_IGNORE);
        return;
    }
    for (int tag = 3; tag >= 0; tag--) {
        for (int i = 0; i < 2; i++) {
            MPI_Recv(&value, 1, MPI_INT, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            say("tag %d: %d\n", tag, value);
        }
    }
}
