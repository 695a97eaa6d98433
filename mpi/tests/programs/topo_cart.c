/* Ranks: 1 2 3 5. Cartesian grids: coordinates, ranks, shifts. */
#include "check.h"

static void program(void) {
    MPI_Comm grid;
    int dims[2] = {0, 0}, periods[2] = {1, 0}, at[2], of[2], cyclic[2], count, other, from, to, kind;
    MPI_Dims_create(size, 2, dims);
    ints("dims", dims, 2);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
    MPI_Topo_test(grid, &kind);
    MPI_Cartdim_get(grid, &count);
    say("cart %d, dims %d\n", kind == MPI_CART, count);
    MPI_Cart_get(grid, 2, of, cyclic, at);
    ints("at", at, 2);
    ints("of", of, 2);
    ints("periods", cyclic, 2);
    for (int i = 0; i < size; i++) {
        MPI_Cart_coords(grid, i, 2, at);
        MPI_Cart_rank(grid, at, &other);
        say("%d: %d %d: %d\n", i, at[0], at[1], other);
    }
    at[0] = -1;
    at[1] = 0;
    MPI_Cart_rank(grid, at, &other);
    say("around %d\n", other);
    for (int dim = 0; dim < 2; dim++) {
        for (int step = -2; step <= 2; step++) {
            MPI_Cart_shift(grid, dim, step, &from, &to);
            say("shift %d by %d: ", dim, step);
            number(from);
            say(" ");
            number(to);
            say("\n");
        }
    }
    MPI_Comm_free(&grid);
    MPI_Topo_test(MPI_COMM_WORLD, &kind);
    named("world", kind);
}
