/* Ranks: 1 2 3. Reductions with counts: blocking, nonblocking and persistent. */
#include "check.h"

static void program(void) {
    int out[3], in[3];
    MPI_Count counts[3] = {1, 1, 1};
    MPI_Request request;
    fill(out, 3, rank + 1);
#define SHOW(name, count) do { ints(name, in, count); fill(in, 3, -5); } while (0)
#define NOW(name, count) do { MPI_Wait(&request, MPI_STATUS_IGNORE); SHOW(name, count); } while (0)
#define STARTED(name, count) do { MPI_Start(&request); NOW(name, count); MPI_Request_free(&request); } while (0)
    fill(in, 3, -5);
    MPI_Reduce_c(out, in, 3, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    SHOW("reduce", 3);
    MPI_Ireduce_c(out, in, 3, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD, &request);
    NOW("ireduce", 3);
    MPI_Reduce_init_c(out, in, 3, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    STARTED("reduce_init", 3);
    MPI_Iallreduce_c(out, in, 3, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    NOW("iallreduce", 3);
    MPI_Allreduce_init_c(out, in, 3, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    STARTED("allreduce_init", 3);
    MPI_Iscan_c(out, in, 3, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    NOW("iscan", 3);
    MPI_Scan_init_c(out, in, 3, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    STARTED("scan_init", 3);
    MPI_Exscan_c(out, in, 3, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    SHOW("exscan", 3);
    MPI_Iexscan_c(out, in, 3, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    NOW("iexscan", 3);
    MPI_Exscan_init_c(out, in, 3, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    STARTED("exscan_init", 3);
    MPI_Reduce_scatter_c(out, in, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    SHOW("reduce_scatter", 1);
    MPI_Ireduce_scatter_c(out, in, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    NOW("ireduce_scatter", 1);
    MPI_Reduce_scatter_init_c(out, in, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    STARTED("reduce_scatter_init", 1);
    MPI_Reduce_scatter_block_c(out, in, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    SHOW("reduce_scatter_block", 1);
    MPI_Ireduce_scatter_block_c(out, in, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    NOW("ireduce_scatter_block", 1);
    MPI_Reduce_scatter_block_init_c(out, in, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    STARTED("reduce_scatter_block_init", 1);
}
