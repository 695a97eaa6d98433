/* Ranks: 2. A message that is longer than the buffer is an error; the next one is not. */
#include "check.h"

static void program(void) {
    int values[10];
    static int big[100000];
    MPI_Status status;
    errors_return();
    if (rank == 0) {
        fill(values, 10, 0);
        MPI_Send(values, 10, MPI_INT, 1, 0, MPI_COMM_WORLD);
        MPI_Send(big, LENGTH(big), MPI_INT, 1, 0, MPI_COMM_WORLD);
        MPI_Send(values, 2, MPI_INT, 1, 0, MPI_COMM_WORLD);
        return;
    }
    result("short", MPI_Recv(values, 4, MPI_INT, 0, 0, MPI_COMM_WORLD, &status));
    result("long", MPI_Recv(values, 4, MPI_INT, 0, 0, MPI_COMM_WORLD, &status));
    result("right", MPI_Recv(values, 4, MPI_INT, 0, 0, MPI_COMM_WORLD, &status));
    status_of("status", &status, MPI_INT);
    ints("values", values, 2);
}
