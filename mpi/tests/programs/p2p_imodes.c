/* Ranks: 2 3. Nonblocking messages of each mode, around the ring. */
#include "check.h"

static void program(void) {
    static char attached[1000];
    int next = (rank + 1) % size, previous = (rank + size - 1) % size, out[4], in[4], attached_size;
    MPI_Request requests[8];
    MPI_Status statuses[8];
    void *detached;
    fill(out, 4, 10 * rank);
    MPI_Buffer_attach(attached, sizeof attached);
    for (int i = 0; i < 4; i++) {
        MPI_Irecv(in + i, 1, MPI_INT, previous, i, MPI_COMM_WORLD, requests + i);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Isend(out, 1, MPI_INT, next, 0, MPI_COMM_WORLD, requests + 4);
    MPI_Issend(out + 1, 1, MPI_INT, next, 1, MPI_COMM_WORLD, requests + 5);
    MPI_Ibsend(out + 2, 1, MPI_INT, next, 2, MPI_COMM_WORLD, requests + 6);
    MPI_Irsend(out + 3, 1, MPI_INT, next, 3, MPI_COMM_WORLD, requests + 7);
    MPI_Waitall(8, requests, statuses);
    MPI_Buffer_detach(&detached, &attached_size);
    ints("in", in, 4);
    for (int i = 0; i < 4; i++) status_of("status", statuses + i, MPI_INT);
    for (int i = 0; i < 8; i++) say("null %d\n", requests[i] == MPI_REQUEST_NULL);
}
