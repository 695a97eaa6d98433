/* Ranks: 2. The library makes the buffer of buffered messages itself. */
#include "check.h"

static void program(void) {
    static int values[50000];
    MPI_Request request;
    if (rank == 0) {
        MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0);
        fill(values, LENGTH(values), 1);
        MPI_Bsend(values, LENGTH(values), MPI_INT, 1, 0, MPI_COMM_WORLD);
        MPI_Ibsend(values, 10, MPI_INT, 1, 1, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        fill(values, LENGTH(values), -5);
        MPI_Send(NULL, 0, MPI_INT, 1, 2, MPI_COMM_WORLD);
        MPI_Buffer_flush();
        void *detached = NULL;
        int length;
        MPI_Buffer_detach(&detached, &length);
        say("automatic: %d\n", detached == MPI_BUFFER_AUTOMATIC);
        return;
    }
    MPI_Recv(NULL, 0, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(values, 10, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    ints("short", values, 10);
    MPI_Recv(values, LENGTH(values), MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    ints("long", values + LENGTH(values) - 3, 3);
}
