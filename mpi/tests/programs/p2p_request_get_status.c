/* Ranks: 2. Request_get_status looks without freeing the request. */
#include "check.h"

static void program(void) {
    int value = 3, flag = 0;
    MPI_Request request;
    MPI_Status status;
    if (rank == 0) {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Send(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
        return;
    }
    MPI_Irecv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &request);
    MPI_Request_get_status(request, &flag, &status);
    say("before %d\n", flag);
    MPI_Barrier(MPI_COMM_WORLD);
    while (!flag) MPI_Request_get_status(request, &flag, &status);
    status_of("status", &status, MPI_INT);
    MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
    say("again %d, handle %d\n", flag, request != MPI_REQUEST_NULL);
    MPI_Wait(&request, &status);
    status_of("wait", &status, MPI_INT);
}
