/* Ranks: 1 2 3. Ranks without a colour get no communicator. */
#include "check.h"

static void program(void) {
    MPI_Comm part;
    int of;
    MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? MPI_UNDEFINED : 1, 0, &part);
    say("null %d\n", part == MPI_COMM_NULL);
    if (part != MPI_COMM_NULL) {
        MPI_Comm_size(part, &of);
        say("size %d\n", of);
        MPI_Barrier(part);
        MPI_Comm_free(&part);
    }
    MPI_Comm_split(MPI_COMM_WORLD, MPI_UNDEFINED, 0, &part);
    say("null %d\n", part == MPI_COMM_NULL);
}
