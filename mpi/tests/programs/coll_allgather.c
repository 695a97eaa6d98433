/* Ranks: 1 2 3 5. Allgather of short and long parts, also in place. */
#include "check.h"

static void program(void) {
    enum { big = 30000 };
    int out[2], in[10], wrong = 0;
    int *long_in = malloc(5 * big * sizeof(int)), *long_out = malloc(big * sizeof(int));
    fill(out, 2, 10 * rank);
    MPI_Allgather(out, 2, MPI_INT, in, 2, MPI_INT, MPI_COMM_WORLD);
    ints("in", in, 2 * size);
    fill(in, 10, 0);
    fill(in + 2 * rank, 2, 20 * rank);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, 2, MPI_INT, MPI_COMM_WORLD);
    ints("in place", in, 2 * size);
    fill(long_out, big, rank);
    MPI_Allgather(long_out, big, MPI_INT, long_in, big, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < size * big; i++) wrong += long_in[i] != i / big + i % big;
    say("wrong: %d\n", wrong);
    free(long_in);
    free(long_out);
}
