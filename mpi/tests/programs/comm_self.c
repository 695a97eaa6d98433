/* Ranks: 1 2. Collectives in MPI_COMM_SELF. */
#include "check.h"

static void program(void) {
    int value = rank + 5, in = 0, at, of;
    MPI_Comm_rank(MPI_COMM_SELF, &at);
    MPI_Comm_size(MPI_COMM_SELF, &of);
    MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_SELF);
    MPI_Allreduce(&value, &in, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
    say("%d of %d: %d\n", at, of, in);
    in = -1;
    MPI_Alltoall(&value, 1, MPI_INT, &in, 1, MPI_INT, MPI_COMM_SELF);
    say("%d\n", in);
    MPI_Barrier(MPI_COMM_SELF);
}
