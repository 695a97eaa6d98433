/* Ranks: 1 2. Persistent requests and matched receives whose counts are MPI_Count. */
#include "check.h"

static void program(void) {
    static char buffer[2000];
    int next = (rank + 1) % size, previous = (rank + size - 1) % size, out[4], in[4];
    MPI_Request sends[4], receives[4], request;
    MPI_Message message;
    MPI_Count length = 1, count, room;
    MPI_Status status;
    void *detached;
    fill(out, 4, 10 * rank);
    MPI_Buffer_attach_c(buffer, sizeof buffer);
    for (int i = 0; i < 4; i++) MPI_Recv_init_c(in + i, length, MPI_INT, previous, i, MPI_COMM_WORLD, receives + i);
    MPI_Send_init_c(out, length, MPI_INT, next, 0, MPI_COMM_WORLD, sends);
    MPI_Bsend_init_c(out + 1, length, MPI_INT, next, 1, MPI_COMM_WORLD, sends + 1);
    MPI_Ssend_init_c(out + 2, length, MPI_INT, next, 2, MPI_COMM_WORLD, sends + 2);
    MPI_Rsend_init_c(out + 3, length, MPI_INT, next, 3, MPI_COMM_WORLD, sends + 3);
    MPI_Startall(4, receives);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Startall(4, sends);
    MPI_Waitall(4, sends, MPI_STATUSES_IGNORE);
    MPI_Waitall(4, receives, MPI_STATUSES_IGNORE);
    ints("in", in, 4);
    for (int i = 0; i < 4; i++) {
        MPI_Request_free(sends + i);
        MPI_Request_free(receives + i);
    }
    MPI_Buffer_detach_c(&detached, &room);
    for (int i = 0; i < 2; i++) {
        MPI_Isend(out, 3, MPI_INT, next, 9, MPI_COMM_WORLD, &request);
        MPI_Mprobe(previous, 9, MPI_COMM_WORLD, &message, &status);
        MPI_Get_count_c(&status, MPI_INT, &count);
        if (i == 0) {
            MPI_Mrecv_c(in, count, MPI_INT, &message, &status);
        } else {
            MPI_Request receive;
            MPI_Imrecv_c(in, count, MPI_INT, &message, &receive);
            MPI_Wait(&receive, &status);
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        say("count %lld\n", (long long)count);
        ints("in", in, 3);
    }
}
