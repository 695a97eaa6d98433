/* Ranks: 2. The class of the error for each wrong argument of a topology. */
#include "check.h"

static void program(void) {
    MPI_Comm grid;
    int dims[2] = {size, 2}, periods[2] = {0, 0}, at[2] = {5, 0}, value, from, to;
    errors_return();
    say("too large %d\n", MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid) != MPI_SUCCESS);
    result("no topology", MPI_Cartdim_get(MPI_COMM_WORLD, &value));
    result("no topology", MPI_Graphdims_get(MPI_COMM_WORLD, &value, &from));
    MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &grid);
    MPI_Comm_set_errhandler(grid, MPI_ERRORS_RETURN);
    say("coordinates refused %d\n", MPI_Cart_rank(grid, at, &value) != MPI_SUCCESS);
    result("rank", MPI_Cart_coords(grid, size, 1, at));
    say("dimension refused %d\n", MPI_Cart_shift(grid, 1, 1, &from, &to) != MPI_SUCCESS);
    MPI_Comm_free(&grid);
}
