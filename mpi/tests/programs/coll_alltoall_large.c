/* Ranks: 2 3. Each rank sends each other rank 400 kB. */
#include "check.h"

static void program(void) {
    enum { part = 100000 };
    int *out = malloc(size * part * sizeof(int)), *in = malloc(size * part * sizeof(int)), wrong = 0;
    for (int i = 0; i < size * part; i++) out[i] = 10 * rank + i / part + i % part;
    MPI_Alltoall(out, part, MPI_INT, in, part, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < size * part; i++) wrong += in[i] != 10 * (i / part) + rank + i % part;
    say("wrong: %d\n", wrong);
    free(out);
    free(in);
}
