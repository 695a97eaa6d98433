/* Ranks: 1 2 3 5. Rows and columns of a grid. */
#include "check.h"

static void program(void) {
    MPI_Comm grid, part;
    int dims[3] = {1, size, 1}, periods[3] = {1, 1, 0}, keep[3], count, of, at, place[3], cyclic[3];
    MPI_Cart_create(MPI_COMM_WORLD, 3, dims, periods, 0, &grid);
    for (int which = 0; which < 8; which++) {
        for (int i = 0; i < 3; i++) keep[i] = which >> i & 1;
        MPI_Cart_sub(grid, keep, &part);
        MPI_Cartdim_get(part, &count);
        MPI_Comm_size(part, &of);
        MPI_Comm_rank(part, &at);
        say("%d: dims %d, %d of %d", which, count, at, of);
        MPI_Cart_get(part, count, dims, cyclic, place);
        for (int i = 0; i < count; i++) say(", %d %d %d", dims[i], cyclic[i], place[i]);
        say("\n");
        MPI_Comm_free(&part);
    }
    MPI_Comm_free(&grid);
}
