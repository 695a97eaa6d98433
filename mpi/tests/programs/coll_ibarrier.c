/* Ranks: 1 2 3. A nonblocking barrier is not complete before the last rank comes. */
#include "check.h"

static void program(void) {
    int flag = 0;
    MPI_Request request;
    if (rank == size - 1 && size > 1) {
        MPI_Recv(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Ibarrier(MPI_COMM_WORLD, &request);
    } else {
        MPI_Ibarrier(MPI_COMM_WORLD, &request);
        if (size > 1) {
            for (int i = 0; i < 20; i++) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
            if (rank == 0) say("early %d\n", flag);
        }
        if (rank == 0 && size > 1) MPI_Send(NULL, 0, MPI_INT, size - 1, 0, MPI_COMM_WORLD);
    }
    while (request != MPI_REQUEST_NULL) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    say("done %d\n", flag);
}
