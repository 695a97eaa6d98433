/* Ranks: 2. Test is false before the message is sent, and true some time after. */
#include "check.h"

static void program(void) {
    int value = 0, flag = 9;
    MPI_Request request;
    MPI_Status status;
    if (rank == 0) {
        MPI_Barrier(MPI_COMM_WORLD);
        value = 42;
        MPI_Send(&value, 1, MPI_INT, 1, 3, MPI_COMM_WORLD);
        return;
    }
    MPI_Irecv(&value, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, &request);
    MPI_Test(&request, &flag, &status);
    say("before: %d, request %d\n", flag, request != MPI_REQUEST_NULL);
    MPI_Barrier(MPI_COMM_WORLD);
    while (!flag) MPI_Test(&request, &flag, &status);
    say("after: %d, value %d, null %d\n", flag, value, request == MPI_REQUEST_NULL);
    status_of("status", &status, MPI_INT);
    MPI_Test(&request, &flag, &status);
    say("of null: %d\n", flag);
    status_of("status", &status, MPI_INT);
}
