/* Ranks: 1 2 3 5. Each process exchanges its edges with its neighbours of a periodic line. */
#include "check.h"

static void program(void) {
    MPI_Comm line;
    int dims[1] = {size}, periods[1] = {0}, cells[6], below, above;
    for (int cyclic = 0; cyclic < 2; cyclic++) {
        periods[0] = cyclic;
        MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 1, &line);
        fill(cells, 6, 10 * rank);
        cells[0] = cells[5] = -1;
        MPI_Cart_shift(line, 0, 1, &below, &above);
        MPI_Sendrecv(cells + 4, 1, MPI_INT, above, 0, cells, 1, MPI_INT, below, 0, line, MPI_STATUS_IGNORE);
        MPI_Sendrecv(cells + 1, 1, MPI_INT, below, 1, cells + 5, 1, MPI_INT, above, 1, line, MPI_STATUS_IGNORE);
        ints("cells", cells, 6);
        MPI_Comm_free(&line);
    }
}
