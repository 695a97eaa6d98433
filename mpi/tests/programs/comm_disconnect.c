/* Ranks: 1 2. Disconnect frees a communicator. */
#include "check.h"

static void program(void) {
    MPI_Comm copy;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Barrier(copy);
    MPI_Comm_disconnect(&copy);
    say("null %d\n", copy == MPI_COMM_NULL);
}
