/* Ranks: 1 2 3 5. Gathers to each root. */
#include "check.h"

static void program(void) {
    int out[3], in[15];
    for (int root = 0; root < size; root++) {
        fill(out, 3, 10 * rank + 100 * root);
        fill(in, 15, 0);
        MPI_Gather(out, 3, MPI_INT, in, 3, MPI_INT, root, MPI_COMM_WORLD);
        ints("in", in, 3 * size);
    }
}
