/* Ranks: 2. Messages of length zero, with and without a buffer. */
#include "check.h"

static void program(void) {
    MPI_Status status;
    int value = 1;
    if (rank == 0) {
        MPI_Send(NULL, 0, MPI_INT, 1, 1, MPI_COMM_WORLD);
        MPI_Send(&value, 0, MPI_DOUBLE, 1, 2, MPI_COMM_WORLD);
        MPI_Ssend(NULL, 0, MPI_BYTE, 1, 3, MPI_COMM_WORLD);
        return;
    }
    MPI_Recv(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &status);
    status_of("status", &status, MPI_INT);
    MPI_Recv(NULL, 0, MPI_DOUBLE, 0, 2, MPI_COMM_WORLD, &status);
    status_of("status", &status, MPI_DOUBLE);
    MPI_Recv(&value, 1, MPI_BYTE, 0, 3, MPI_COMM_WORLD, &status);
    status_of("status", &status, MPI_BYTE);
    ints("value", &value, 1);
}
