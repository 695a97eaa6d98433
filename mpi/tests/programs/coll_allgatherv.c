/* Ranks: 1 2 3 5. Parts of different lengths, one of them empty, with gaps. */
#include "check.h"

static void program(void) {
    int out[6], in[40], counts[5], places[5];
    fill(out, 6, 10 * rank);
    for (int i = 0; i < 40; i++) in[i] = -1;
    for (int i = 0; i < size; i++) {
        counts[i] = (i + 2) % 3;
        places[i] = 4 * ((i + 1) % size) + 1;
    }
    MPI_Allgatherv(out, counts[rank], MPI_INT, in, counts, places, MPI_INT, MPI_COMM_WORLD);
    ints("in", in, 4 * size + 1);
    for (int i = 0; i < 40; i++) in[i] = -1;
    fill(in + places[rank], counts[rank], 50 * rank);
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_INT, in, counts, places, MPI_INT, MPI_COMM_WORLD);
    ints("in place", in, 4 * size + 1);
}
