/* Ranks: 3 5. A grid of fewer processes than there are, and one without dimensions. */
#include "check.h"

static void program(void) {
    MPI_Comm grid;
    int dims[1] = {2}, periods[1] = {0}, count, of;
    MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 1, &grid);
    say("null %d\n", grid == MPI_COMM_NULL);
    if (grid != MPI_COMM_NULL) {
        MPI_Comm_size(grid, &of);
        say("size %d\n", of);
        MPI_Comm_free(&grid);
    }
    MPI_Cart_create(MPI_COMM_WORLD, 0, dims, periods, 0, &grid);
    say("null %d\n", grid == MPI_COMM_NULL);
    if (grid != MPI_COMM_NULL) {
        MPI_Cartdim_get(grid, &count);
        MPI_Comm_size(grid, &of);
        say("dims %d, size %d\n", count, of);
        MPI_Comm_free(&grid);
    }
}
