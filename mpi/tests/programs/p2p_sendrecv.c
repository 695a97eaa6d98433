/* Ranks: 1 2 3. Each rank exchanges arrays of different lengths with its neighbours. */
#include "check.h"

static void program(void) {
    int next = (rank + 1) % size, previous = (rank + size - 1) % size, out[8], in[8] = {0};
    MPI_Status status;
    fill(out, 8, 10 * rank);
    MPI_Sendrecv(out, rank + 1, MPI_INT, next, 1, in, 8, MPI_INT, previous, 1, MPI_COMM_WORLD, &status);
    ints("in", in, 8);
    status_of("status", &status, MPI_INT);
    MPI_Sendrecv(out, 2, MPI_INT, previous, rank, in, 8, MPI_INT, MPI_ANY_SOURCE, next, MPI_COMM_WORLD, &status);
    ints("in", in, 8);
    status_of("status", &status, MPI_INT);
}
