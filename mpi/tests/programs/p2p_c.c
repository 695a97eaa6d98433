/* Ranks: 1 2. Messages whose counts are MPI_Count, of each mode. */
#include "check.h"

static void program(void) {
    static char buffer[2000];
    int next = (rank + 1) % size, previous = (rank + size - 1) % size, out[6], in[6][2];
    MPI_Request requests[12];
    MPI_Status status;
    MPI_Count length = 2, room;
    void *detached;
    fill(out, 6, 10 * rank);
    MPI_Buffer_attach_c(buffer, sizeof buffer);
    for (int i = 0; i < 6; i++) MPI_Irecv_c(in[i], length, MPI_INT, previous, i, MPI_COMM_WORLD, requests + i);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Send_c(out, length, MPI_INT, next, 0, MPI_COMM_WORLD);
    MPI_Bsend_c(out + 1, length, MPI_INT, next, 1, MPI_COMM_WORLD);
    MPI_Rsend_c(out + 2, length, MPI_INT, next, 2, MPI_COMM_WORLD);
    MPI_Isend_c(out + 3, length, MPI_INT, next, 3, MPI_COMM_WORLD, requests + 6);
    MPI_Issend_c(out + 4, length, MPI_INT, next, 4, MPI_COMM_WORLD, requests + 7);
    MPI_Ibsend_c(out + 4, length, MPI_INT, next, 5, MPI_COMM_WORLD, requests + 8);
    MPI_Waitall(9, requests, MPI_STATUSES_IGNORE);
    ints("in", in[0], 12);
    MPI_Buffer_detach_c(&detached, &room);
    say("room %lld\n", (long long)room);
    MPI_Irecv(in[0], 2, MPI_INT, previous, 6, MPI_COMM_WORLD, requests);
    MPI_Ssend_c(out, length, MPI_INT, next, 6, MPI_COMM_WORLD);
    MPI_Wait(requests, MPI_STATUS_IGNORE);
    MPI_Irecv(in[0], 2, MPI_INT, previous, 6, MPI_COMM_WORLD, requests);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Irsend_c(out + 2, length, MPI_INT, next, 6, MPI_COMM_WORLD, requests + 1);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    ints("in", in[0], 2);
    MPI_Sendrecv_c(out, length, MPI_INT, next, 1, in[0], length, MPI_INT, previous, 1, MPI_COMM_WORLD, &status);
    ints("in", in[0], 2);
    MPI_Sendrecv_replace_c(out, length, MPI_INT, next, 1, previous, 1, MPI_COMM_WORLD, &status);
    ints("out", out, 2);
}
