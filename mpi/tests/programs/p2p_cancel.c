/* Ranks: 2. A receive without a message is cancelled; one with a message is not. */
#include "check.h"

static void program(void) {
    int value = 5, flag;
    MPI_Request request;
    MPI_Status status;
    if (rank == 0) {
        MPI_Send(&value, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        return;
    }
    MPI_Irecv(&value, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &flag);
    say("cancelled %d\n", flag);
    value = 0;
    MPI_Irecv(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &flag);
    say("cancelled %d, value %d\n", flag, value);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Recv_init(&value, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, &request);
    MPI_Start(&request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &flag);
    say("persistent: cancelled %d, handle %d\n", flag, request != MPI_REQUEST_NULL);
    MPI_Request_free(&request);
}
