/* Ranks: 2. A message of each blocking mode. */
#include "check.h"

static void program(void) {
    char attached[1000];
    int value;
    if (rank == 0) {
        int size_of_attached;
        void *detached;
        value = 1;
        MPI_Send(&value, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
        value = 2;
        MPI_Ssend(&value, 1, MPI_INT, 1, 2, MPI_COMM_WORLD);
        MPI_Buffer_attach(attached, sizeof attached);
        value = 3;
        MPI_Bsend(&value, 1, MPI_INT, 1, 3, MPI_COMM_WORLD);
        value = -1;
        MPI_Buffer_detach(&detached, &size_of_attached);
        say("detached %d, the same %d\n", size_of_attached, detached == attached);
        MPI_Recv(NULL, 0, MPI_INT, 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        value = 4;
        MPI_Rsend(&value, 1, MPI_INT, 1, 4, MPI_COMM_WORLD);
        return;
    }
    for (int tag = 1; tag < 4; tag++) {
        MPI_Recv(&value, 1, MPI_INT, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        ints("value", &value, 1);
    }
    MPI_Request ready;
    MPI_Irecv(&value, 1, MPI_INT, 0, 4, MPI_COMM_WORLD, &ready);
    MPI_Send(NULL, 0, MPI_INT, 0, 9, MPI_COMM_WORLD);
    MPI_Wait(&ready, MPI_STATUS_IGNORE);
    ints("value", &value, 1);
}
