/* Ranks: 2. Two hundred messages come before their receives, which begin with the last tag. */
#include "check.h"

static void program(void) {
    static int values[200][50];
    int in[50];
    MPI_Request requests[200];
    if (rank == 0) {
        for (int i = 0; i < 200; i++) {
            fill(values[i], 50, i);
            MPI_Isend(values[i], i % 50, MPI_INT, 1, i, MPI_COMM_WORLD, requests + i);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Waitall(200, requests, MPI_STATUSES_IGNORE);
        return;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    int wrong = 0, total = 0;
    for (int i = 199; i >= 0; i--) {
        int count;
        MPI_Status status;
        MPI_Recv(in, 50, MPI_INT, 0, i, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_INT, &count);
        wrong += count != i % 50;
        for (int at = 0; at < count; at++) wrong += in[at] != i + at;
        total += count;
    }
    say("wrong %d, total %d\n", wrong, total);
}
