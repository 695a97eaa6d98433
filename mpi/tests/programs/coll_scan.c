/* Ranks: 1 2 3 5. Prefixes with and without the own value. */
#include "check.h"

static void program(void) {
    int out[3], in[3];
    MPI_Op ops[] = {MPI_SUM, MPI_MAX, MPI_PROD};
    for (int i = 0; i < 3; i++) {
        fill(out, 3, rank + 1);
        fill(in, 3, -9);
        MPI_Scan(out, in, 3, MPI_INT, ops[i], MPI_COMM_WORLD);
        ints("scan", in, 3);
        fill(in, 3, -9);
        MPI_Exscan(out, in, 3, MPI_INT, ops[i], MPI_COMM_WORLD);
        ints("exscan", in, 3);
    }
}
