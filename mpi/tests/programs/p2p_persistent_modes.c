/* Ranks: 2 3. Persistent sends of the other modes. */
#include "check.h"

static void program(void) {
    static char attached[4000];
    int next = (rank + 1) % size, previous = (rank + size - 1) % size, out[3], in[3], attached_size;
    MPI_Request receives[3], sends[3];
    void *detached;
    MPI_Buffer_attach(attached, sizeof attached);
    for (int i = 0; i < 3; i++) {
        MPI_Recv_init(in + i, 1, MPI_INT, previous, i, MPI_COMM_WORLD, receives + i);
    }
    MPI_Bsend_init(out, 1, MPI_INT, next, 0, MPI_COMM_WORLD, sends);
    MPI_Ssend_init(out + 1, 1, MPI_INT, next, 1, MPI_COMM_WORLD, sends + 1);
    MPI_Rsend_init(out + 2, 1, MPI_INT, next, 2, MPI_COMM_WORLD, sends + 2);
    for (int round = 0; round < 3; round++) {
        fill(out, 3, 10 * round + 100 * rank);
        MPI_Startall(3, receives);
        MPI_Barrier(MPI_COMM_WORLD);
        for (int i = 0; i < 3; i++) MPI_Start(sends + i);
        MPI_Waitall(3, sends, MPI_STATUSES_IGNORE);
        MPI_Waitall(3, receives, MPI_STATUSES_IGNORE);
        ints("in", in, 3);
    }
    for (int i = 0; i < 3; i++) {
        MPI_Request_free(sends + i);
        MPI_Request_free(receives + i);
    }
    MPI_Buffer_detach(&detached, &attached_size);
}
