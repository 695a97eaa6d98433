/* Ranks: 1 2 3. Nonblocking collectives in place. */
#include "check.h"

static void program(void) {
    int sum[2], all[6], exchange[6], prefix[2];
    MPI_Request requests[4];
    fill(sum, 2, rank);
    fill(prefix, 2, rank);
    fill(all, 6, -6);
    fill(all + 2 * rank, 2, 10 * rank);
    fill(exchange, 6, 100 * rank);
    MPI_Iallreduce(MPI_IN_PLACE, sum, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD, requests);
    MPI_Iallgather(MPI_IN_PLACE, 0, MPI_INT, all, 2, MPI_INT, MPI_COMM_WORLD, requests + 1);
    MPI_Ialltoall(MPI_IN_PLACE, 0, MPI_INT, exchange, 2, MPI_INT, MPI_COMM_WORLD, requests + 2);
    MPI_Iscan(MPI_IN_PLACE, prefix, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD, requests + 3);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    ints("iallreduce", sum, 2);
    ints("iallgather", all, 2 * size);
    ints("ialltoall", exchange, 2 * size);
    ints("iscan", prefix, 2);
}
