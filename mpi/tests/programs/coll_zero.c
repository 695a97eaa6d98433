/* Ranks: 1 2 3. Collectives of nothing. */
#include "check.h"

static void program(void) {
    int value = 5, counts[3] = {0}, places[3] = {0};
    MPI_Bcast(NULL, 0, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Gather(NULL, 0, MPI_INT, &value, 0, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Scatter(NULL, 0, MPI_INT, &value, 0, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Allgather(NULL, 0, MPI_INT, &value, 0, MPI_INT, MPI_COMM_WORLD);
    MPI_Alltoall(NULL, 0, MPI_INT, &value, 0, MPI_INT, MPI_COMM_WORLD);
    MPI_Gatherv(NULL, 0, MPI_INT, &value, counts, places, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Alltoallv(NULL, counts, places, MPI_INT, &value, counts, places, MPI_INT, MPI_COMM_WORLD);
    MPI_Reduce(NULL, &value, 0, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Allreduce(NULL, &value, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Scan(NULL, &value, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Exscan(NULL, &value, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Reduce_scatter_block(NULL, &value, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Reduce_scatter(NULL, &value, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    ints("value", &value, 1);
}
