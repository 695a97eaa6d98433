/* Ranks: 2. Messages of one communicator are not received in another. */
#include "check.h"

static void program(void) {
    MPI_Comm other;
    int value = 0, flag;
    MPI_Status status;
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    if (rank == 0) {
        value = 1;
        MPI_Send(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
        value = 2;
        MPI_Send(&value, 1, MPI_INT, 1, 0, other);
    } else {
        MPI_Probe(0, 0, other, &status);
        MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, other, &status);
        ints("other", &value, 1);
        MPI_Iprobe(0, 0, other, &flag, &status);
        say("more: %d\n", flag);
        MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        ints("world", &value, 1);
    }
    MPI_Comm_free(&other);
}
