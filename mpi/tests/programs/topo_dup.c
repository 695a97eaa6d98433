/* Ranks: 2 3. A duplicate of a grid is a grid. */
#include "check.h"

static void program(void) {
    MPI_Comm grid, copy;
    int dims[1] = {size}, periods[1] = {1}, kind, from, to;
    MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &grid);
    MPI_Comm_dup(grid, &copy);
    MPI_Comm_free(&grid);
    MPI_Topo_test(copy, &kind);
    MPI_Cart_shift(copy, 0, 1, &from, &to);
    say("cart %d, %d %d\n", kind == MPI_CART, from, to);
    MPI_Comm_free(&copy);
    MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &copy);
    MPI_Topo_test(copy, &kind);
    named("split", kind);
    MPI_Comm_free(&copy);
}
