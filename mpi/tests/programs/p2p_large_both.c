/* Ranks: 2 3. Each rank sends 1 MiB to each other rank at once. */
#include "check.h"

static void program(void) {
    enum { count = 1 << 18 };
    int *out = malloc(count * sizeof(int)), *in = malloc(size * count * sizeof(int));
    MPI_Request requests[6];
    fill(out, count, rank * 1000);
    for (int other = 0; other < size; other++) {
        MPI_Isend(out, count, MPI_INT, other, 0, MPI_COMM_WORLD, requests + other);
        MPI_Irecv(in + other * count, count, MPI_INT, other, 0, MPI_COMM_WORLD, requests + size + other);
    }
    MPI_Waitall(2 * size, requests, MPI_STATUSES_IGNORE);
    for (int other = 0; other < size; other++) {
        int wrong = 0;
        for (int i = 0; i < count; i++) wrong += in[other * count + i] != other * 1000 + i;
        say("from %d: wrong %d\n", other, wrong);
    }
    free(out);
    free(in);
}
