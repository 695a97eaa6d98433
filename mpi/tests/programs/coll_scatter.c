/* Ranks: 1 2 3 5. Scatters from each root. */
#include "check.h"

static void program(void) {
    int out[15], in[3];
    for (int root = 0; root < size; root++) {
        fill(out, 15, rank == root ? 100 * root : -50);
        MPI_Scatter(out, 3, MPI_INT, in, 3, MPI_INT, root, MPI_COMM_WORLD);
        ints("in", in, 3);
    }
}
