/* Ranks: 2 3. A thousand requests of each rank at once. */
#include "check.h"

static void program(void) {
    static int out[500], in[500];
    static MPI_Request requests[1000];
    int next = (rank + 1) % size, previous = (rank + size - 1) % size, wrong = 0;
    fill(out, 500, 1000 * rank);
    for (int i = 499; i >= 0; i--) MPI_Irecv(in + i, 1, MPI_INT, previous, i, MPI_COMM_WORLD, requests + i);
    for (int i = 0; i < 500; i++) MPI_Isend(out + i, 1, MPI_INT, next, i, MPI_COMM_WORLD, requests + 500 + i);
    MPI_Waitall(1000, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 500; i++) wrong += in[i] != 1000 * previous + i;
    say("wrong %d\n", wrong);
}
