/* Ranks: 3 5. Collectives of two halves at the same time, with other roots and orders. */
#include "check.h"

static void program(void) {
    MPI_Comm half;
    int at, of, value, all[5], sum;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    MPI_Comm_rank(half, &at);
    MPI_Comm_size(half, &of);
    for (int i = 0; i < 3; i++) {
        value = 10 * rank + i;
        MPI_Bcast(&value, 1, MPI_INT, (i + 1) % of, half);
        MPI_Scan(&rank, &sum, 1, MPI_INT, MPI_SUM, half);
        MPI_Gather(&rank, 1, MPI_INT, all, 1, MPI_INT, of - 1, half);
        say("%d: value %d, sum %d\n", at, value, sum);
        if (at == of - 1) ints("all", all, of);
        if (i % 2) MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Comm_free(&half);
}
