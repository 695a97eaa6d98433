/* Ranks: 2. Collectives of 1 MiB and more. */
#include "check.h"

static void program(void) {
    enum { count = 1 << 18 };
    int *out = malloc(2 * count * sizeof(int)), *in = malloc(2 * count * sizeof(int)), wrong = 0;
    fill(out, 2 * count, rank);
    MPI_Allgather(out, count, MPI_INT, in, count, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < 2 * count; i++) wrong += in[i] != i / count + i % count;
    MPI_Allreduce(out, in, 2 * count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < 2 * count; i++) wrong += in[i] != 2 * i + 1;
    MPI_Reduce_scatter_block(out, in, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < count; i++) wrong += in[i] != 2 * (i + rank * count) + 1;
    MPI_Gather(out, count, MPI_INT, in, count, MPI_INT, 1, MPI_COMM_WORLD);
    if (rank == 1) for (int i = 0; i < 2 * count; i++) wrong += in[i] != i / count + i % count;
    MPI_Scatter(out, count, MPI_INT, in, count, MPI_INT, 1, MPI_COMM_WORLD);
    for (int i = 0; i < count; i++) wrong += in[i] != 1 + rank * count + i;
    MPI_Scan(out, in, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < count; i++) wrong += in[i] != (rank + 1) * i + rank;
    MPI_Bcast(out, 2 * count, MPI_INT, 1, MPI_COMM_WORLD);
    for (int i = 0; i < 2 * count; i++) wrong += out[i] != 1 + i;
    say("wrong: %d\n", wrong);
    free(out);
    free(in);
}
