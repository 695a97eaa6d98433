/* Ranks: 2 3. Rank 0 sends each rank an array of another length. */
#include "check.h"

static void program(void) {
    int values[10] = {0};
    MPI_Status status;
    if (rank == 0) {
        fill(values, 10, 100);
        for (int to = 1; to < size; to++) MPI_Send(values, to + 3, MPI_INT, to, to, MPI_COMM_WORLD);
        return;
    }
    MPI_Recv(values, 10, MPI_INT, 0, rank, MPI_COMM_WORLD, &status);
    ints("values", values, 10);
    status_of("status", &status, MPI_INT);
}
