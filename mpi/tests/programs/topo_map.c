/* Ranks: 2 3. Where a process would be in a topology. */
#include "check.h"

static void program(void) {
    int dims[1] = {size - 1}, periods[1] = {0}, place, index[2] = {1, 2}, edges[2] = {1, 0};
    MPI_Cart_map(MPI_COMM_WORLD, 1, dims, periods, &place);
    named("cart", place);
    MPI_Graph_map(MPI_COMM_WORLD, 2, index, edges, &place);
    named("graph", place);
}
