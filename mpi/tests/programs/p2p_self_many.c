/* Ranks: 1. Two hundred messages of a rank to itself, before it receives the first. */
#include "check.h"

static void program(void) {
    int out[200], in[200], wrong = 0;
    MPI_Request requests[400];
    for (int i = 0; i < 200; i++) {
        out[i] = 3 * i;
        MPI_Isend(out + i, 1, MPI_INT, 0, i % 7, MPI_COMM_WORLD, requests + i);
    }
    for (int i = 0; i < 200; i++) MPI_Irecv(in + i, 1, MPI_INT, 0, i % 7, MPI_COMM_WORLD, requests + 200 + i);
    MPI_Waitall(400, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 200; i++) wrong += in[i] != 3 * i;
    say("wrong %d\n", wrong);
}
