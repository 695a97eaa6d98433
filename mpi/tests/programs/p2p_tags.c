/* Ranks: 2. The largest tag can be used. */
#include "check.h"

static void program(void) {
    int *tag_max, flag, value = 4;
    MPI_Status status;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &tag_max, &flag);
    say("flag %d, at least 32767: %d\n", flag, *tag_max >= 32767);
    if (rank == 0) {
        MPI_Send(&value, 1, MPI_INT, 1, *tag_max, MPI_COMM_WORLD);
        MPI_Send(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    } else {
        MPI_Recv(&value, 1, MPI_INT, 0, *tag_max, MPI_COMM_WORLD, &status);
        say("the same: %d\n", status.MPI_TAG == *tag_max);
        MPI_Recv(&value, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        status_of("status", &status, MPI_INT);
    }
}
