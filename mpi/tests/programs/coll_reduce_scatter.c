/* Ranks: 1 2 3 5. Parts of a sum, of different and of equal lengths, also in place. */
#include "check.h"

static void program(void) {
    int out[25], in[25], counts[5], total = 0;
    for (int i = 0; i < size; i++) {
        counts[i] = (i + 1) % 4;
        total += counts[i];
    }
    fill(out, 25, rank);
    fill(in, 25, -30);
    MPI_Reduce_scatter(out, in, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    ints("in", in, 4);
    MPI_Reduce_scatter(MPI_IN_PLACE, out, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    ints("in place", out, counts[rank]);
    fill(out, 25, rank);
    MPI_Reduce_scatter_block(out, in, 3, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    ints("block", in, 4);
    MPI_Reduce_scatter_block(MPI_IN_PLACE, out, 3, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    ints("block in place", out, 3);
}
