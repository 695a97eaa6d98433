/* Ranks: 1 2 3 5. Sums of arrays from 0 to 100,000 elements. */
#include "check.h"

static void program(void) {
    enum { most = 100000 };
    const int lengths[] = {0, 1, 2, 3, 5, 17, 1000, 4097, most};
    double *out = malloc(most * sizeof(double)), *in = malloc(most * sizeof(double));
    for (int i = 0; i < most; i++) out[i] = rank + 1 + i % 10;
    for (int i = 0; i < LENGTH(lengths); i++) {
        int wrong = 0;
        in[0] = -1;
        MPI_Allreduce(out, in, lengths[i], MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        for (int at = 0; at < lengths[i]; at++) wrong += in[at] != size * (size + 1) / 2 + size * (at % 10);
        say("wrong: %d, first %g\n", wrong, in[0]);
    }
    free(out);
    free(in);
}
