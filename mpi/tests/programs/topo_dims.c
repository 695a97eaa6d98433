/* Ranks: 1. Balanced dimensions for many numbers of processes. */
#include "check.h"

static void program(void) {
    const int counts[] = {1, 2, 3, 4, 6, 7, 8, 12, 16, 18, 24, 27, 30, 36, 48, 60, 64, 72, 96, 100, 120, 128, 210, 256, 1000, 1024};
    int dims[4];
    for (int i = 0; i < LENGTH(counts); i++) {
        for (int count = 1; count < 5; count++) {
            memset(dims, 0, sizeof dims);
            MPI_Dims_create(counts[i], count, dims);
            say("%d", counts[i]);
            ints("", dims, count);
        }
    }
    const int fixed[][4] = {{12, 0, 3, 0}, {30, 5, 0, 0}, {24, 0, 0, 2}, {6, 6, 0, 1}};
    for (int i = 0; i < LENGTH(fixed); i++) {
        memcpy(dims, fixed[i] + 1, 3 * sizeof(int));
        MPI_Dims_create(fixed[i][0], 3, dims);
        ints("fixed", dims, 3);
    }
    errors_return();
    dims[0] = 5;
    dims[1] = 0;
    say("refused %d\n", MPI_Dims_create(12, 2, dims) != MPI_SUCCESS);
}
