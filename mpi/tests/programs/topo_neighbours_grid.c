/* Ranks: 1 2 4. Collectives of neighbours in a grid, also if both are the same rank. */
#include "check.h"

static void program(void) {
    int dims[2] = {0, 0}, periods[2] = {1, 0}, sent[8], got[16], counts[4], places[4], others[4];
    MPI_Aint bytes[4];
    MPI_Datatype types[4];
    MPI_Comm grid;
    MPI_Request request;
    MPI_Dims_create(size, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
    fill(sent, 8, 100 * rank);
    fill(got, 16, -100);
    MPI_Neighbor_allgather(sent, 2, MPI_INT, got, 2, MPI_INT, grid);
    ints("allgather", got, 8);
    fill(got, 16, -100);
    MPI_Neighbor_alltoall(sent, 2, MPI_INT, got, 2, MPI_INT, grid);
    ints("alltoall", got, 8);
    for (int i = 0; i < 4; i++) {
        counts[i] = 2;
        others[i] = 2 * i;
        places[i] = 3 * i;
        bytes[i] = 8 * i;
        types[i] = MPI_INT;
    }
    fill(got, 16, -100);
    MPI_Neighbor_allgatherv(sent, 2, MPI_INT, got, counts, places, MPI_INT, grid);
    ints("allgatherv", got, 12);
    fill(got, 16, -100);
    MPI_Neighbor_alltoallv(sent, counts, others, MPI_INT, got, counts, places, MPI_INT, grid);
    ints("alltoallv", got, 12);
    fill(got, 16, -100);
    MPI_Neighbor_alltoallw(sent, counts, bytes, types, got, counts, bytes, types, grid);
    ints("alltoallw", got, 8);
    fill(got, 16, -100);
    MPI_Ineighbor_alltoall(sent, 2, MPI_INT, got, 2, MPI_INT, grid, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    ints("begun", got, 8);
    MPI_Comm_free(&grid);
}
