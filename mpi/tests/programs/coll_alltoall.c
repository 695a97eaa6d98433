/* Ranks: 1 2 3 5. Each rank sends each other rank two values, also in place. */
#include "check.h"

static void program(void) {
    int out[10], in[10];
    for (int i = 0; i < 2 * size; i++) out[i] = 100 * rank + i;
    MPI_Alltoall(out, 2, MPI_INT, in, 2, MPI_INT, MPI_COMM_WORLD);
    ints("in", in, 2 * size);
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_INT, out, 2, MPI_INT, MPI_COMM_WORLD);
    ints("in place", out, 2 * size);
}
