/* Ranks: 1 2 3 5. Parts of different lengths, in any order. */
#include "check.h"

static void plan(int *out_counts, int *out_places, int *in_counts, int *in_places) {
    for (int i = 0; i < size; i++) {
        out_counts[i] = (rank + 2 * i) % 4;
        out_places[i] = 5 * (size - 1 - i);
        in_counts[i] = (i + 2 * rank) % 4;
        in_places[i] = 4 * ((i + 2) % size);
    }
}
static void program(void) {
    int out[30], in[30], out_counts[5], out_places[5], in_counts[5], in_places[5];
    plan(out_counts, out_places, in_counts, in_places);
    fill(out, 30, 100 * rank);
    for (int i = 0; i < 30; i++) in[i] = -1;
    MPI_Alltoallv(out, out_counts, out_places, MPI_INT, in, in_counts, in_places, MPI_INT, MPI_COMM_WORLD);
    ints("in", in, 5 * size);
    for (int i = 0; i < size; i++) out_counts[i] = 1 + (rank + i) % 2;
    fill(in, 30, 10 * rank);
    MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_INT, in, out_counts, out_places, MPI_INT, MPI_COMM_WORLD);
    ints("in place", in, 5 * size);
}
