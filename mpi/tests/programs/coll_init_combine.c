/* Ranks: 1 2 3 5. Persistent reductions, started three times. */
#include "check.h"

static void program(void) {
    int out[5], reduced[5], all[5], prefix[5], before[5], part[5], block[5], counts[5] = {1, 1, 1, 1, 1};
    MPI_Request requests[6];
    fill(reduced, 5, -5);
    fill(before, 5, -5);
    MPI_Reduce_init(out, reduced, 5, MPI_INT, MPI_SUM, size - 1, MPI_COMM_WORLD, MPI_INFO_NULL, requests);
    MPI_Allreduce_init(out, all, 5, MPI_INT, MPI_MAX, MPI_COMM_WORLD, MPI_INFO_NULL, requests + 1);
    MPI_Scan_init(out, prefix, 5, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, requests + 2);
    MPI_Exscan_init(out, before, 5, MPI_INT, MPI_PROD, MPI_COMM_WORLD, MPI_INFO_NULL, requests + 3);
    MPI_Reduce_scatter_init(out, part, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, requests + 4);
    MPI_Reduce_scatter_block_init(out, block, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD, MPI_INFO_NULL, requests + 5);
    for (int round = 0; round < 3; round++) {
        fill(out, 5, rank + 1 + round);
        MPI_Startall(6, requests);
        MPI_Waitall(6, requests, MPI_STATUSES_IGNORE);
        ints("reduce", reduced, 5);
        ints("allreduce", all, 5);
        ints("scan", prefix, 5);
        ints("exscan", before, 5);
        ints("reduce_scatter", part, 1);
        ints("reduce_scatter_block", block, 1);
    }
    for (int i = 0; i < 6; i++) MPI_Request_free(requests + i);
}
