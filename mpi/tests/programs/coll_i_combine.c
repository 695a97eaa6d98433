/* Ranks: 1 2 3 5. Nonblocking reductions, all at once. */
#include "check.h"

static void program(void) {
    int out[5], reduced[5], all[5], prefix[5], before[5], part[5], block[5], counts[5];
    MPI_Request requests[6];
    for (int i = 0; i < 5; i++) counts[i] = 1;
    fill(out, 5, rank + 1);
    fill(reduced, 5, -5);
    fill(before, 5, -5);
    MPI_Ireduce(out, reduced, 5, MPI_INT, MPI_SUM, size - 1, MPI_COMM_WORLD, requests);
    MPI_Iallreduce(out, all, 5, MPI_INT, MPI_MAX, MPI_COMM_WORLD, requests + 1);
    MPI_Iscan(out, prefix, 5, MPI_INT, MPI_SUM, MPI_COMM_WORLD, requests + 2);
    MPI_Iexscan(out, before, 5, MPI_INT, MPI_PROD, MPI_COMM_WORLD, requests + 3);
    MPI_Ireduce_scatter(out, part, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD, requests + 4);
    MPI_Ireduce_scatter_block(out, block, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD, requests + 5);
    for (int done = 0; !done;) MPI_Testall(6, requests, &done, MPI_STATUSES_IGNORE);
    ints("ireduce", reduced, 5);
    ints("iallreduce", all, 5);
    ints("iscan", prefix, 5);
    ints("iexscan", before, 5);
    ints("ireduce_scatter", part, 1);
    ints("ireduce_scatter_block", block, 1);
}
