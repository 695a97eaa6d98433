/* Ranks: 1 2 3 5. Sums, maxima and others of ints, at each root. */
#include "check.h"

static void program(void) {
    MPI_Op ops[] = {MPI_SUM, MPI_PROD, MPI_MAX, MPI_MIN, MPI_BAND, MPI_BOR, MPI_BXOR, MPI_LAND, MPI_LOR, MPI_LXOR};
    int out[4], in[4];
    for (int i = 0; i < LENGTH(ops); i++) {
        int root = i % size;
        for (int at = 0; at < 4; at++) out[at] = (rank * 3 + at * 5 + 1) % 7;
        fill(in, 4, -1);
        MPI_Reduce(out, in, 4, MPI_INT, ops[i], root, MPI_COMM_WORLD);
        ints("in", in, 4);
    }
}
