/* Ranks: 1 2 3 5. Parts of different lengths from places that overlap. */
#include "check.h"

static void program(void) {
    int out[20], in[6], counts[5], places[5];
    for (int root = 0; root < size; root++) {
        fill(out, 20, 100 * root);
        for (int i = 0; i < size; i++) {
            counts[i] = size - i - 1;
            places[i] = 2 * (size - i);
        }
        fill(in, 6, -6);
        MPI_Scatterv(out, counts, places, MPI_INT, in, counts[rank], MPI_INT, root, MPI_COMM_WORLD);
        ints("in", in, 6);
    }
}
