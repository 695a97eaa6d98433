/* Ranks: 2. A thousand round trips. */
#include "check.h"

static void program(void) {
    int value = 0;
    for (int i = 0; i < 1000; i++) {
        if (rank == 0) {
            MPI_Send(&value, 1, MPI_INT, 1, i, MPI_COMM_WORLD);
            MPI_Recv(&value, 1, MPI_INT, 1, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(&value, 1, MPI_INT, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            value++;
            MPI_Send(&value, 1, MPI_INT, 0, i, MPI_COMM_WORLD);
        }
    }
    ints("value", &value, 1);
}
