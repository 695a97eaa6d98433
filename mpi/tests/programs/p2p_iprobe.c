/* Ranks: 2. Iprobe finds nothing, then the message, then nothing. */
#include "check.h"

static void program(void) {
    int value = 8, flag;
    MPI_Status status;
    if (rank == 0) {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Send(&value, 1, MPI_INT, 1, 4, MPI_COMM_WORLD);
        return;
    }
    MPI_Iprobe(0, 4, MPI_COMM_WORLD, &flag, &status);
    say("before %d\n", flag);
    MPI_Barrier(MPI_COMM_WORLD);
    while (!flag) MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &status);
    status_of("status", &status, MPI_INT);
    MPI_Iprobe(0, 5, MPI_COMM_WORLD, &flag, &status);
    say("of another tag %d\n", flag);
    MPI_Recv(&value, 1, MPI_INT, 0, 4, MPI_COMM_WORLD, &status);
    MPI_Iprobe(0, 4, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    say("after %d\n", flag);
}
