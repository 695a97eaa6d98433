/* Ranks: 2 3. Collectives while a receive of any message is posted, which takes none of theirs. */
#include "check.h"

static void program(void) {
    int value = -1, sum = rank, all[3];
    MPI_Request request;
    MPI_Status status;
    MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
    MPI_Bcast(&sum, 1, MPI_INT, size - 1, MPI_COMM_WORLD);
    MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Send(&rank, 1, MPI_INT, (rank + 1) % size, 5, MPI_COMM_WORLD);
    MPI_Wait(&request, &status);
    status_of("status", &status, MPI_INT);
    ints("all", all, size);
    say("%d %d\n", value, sum);
}
