/* Ranks: 1. Reductions without communication. */
#include "check.h"

static void program(void) {
    int values[4], into[4];
    MPI_Op ops[] = {MPI_SUM, MPI_PROD, MPI_MAX, MPI_BXOR};
    for (int i = 0; i < LENGTH(ops); i++) {
        fill(values, 4, 3);
        fill(into, 4, 1);
        into[2] = 50;
        MPI_Reduce_local(values, into, 4, MPI_INT, ops[i]);
        ints("into", into, 4);
    }
    MPI_Reduce_local_c(values, into, 3, MPI_INT, MPI_SUM);
    ints("into", into, 4);
}
