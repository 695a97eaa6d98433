/* Ranks: 1 2 3 5. Parts of different lengths, in the reverse order and with gaps. */
#include "check.h"

static void program(void) {
    int out[6], in[40], counts[5], places[5];
    for (int root = 0; root < size; root++) {
        fill(out, 6, 10 * rank);
        for (int i = 0; i < 40; i++) in[i] = -1;
        for (int i = 0; i < size; i++) {
            counts[i] = i;
            places[i] = 6 * (size - 1 - i) + 1;
        }
        MPI_Gatherv(out, rank, MPI_INT, in, counts, places, MPI_INT, root, MPI_COMM_WORLD);
        ints("in", in, 6 * size + 2);
    }
}
