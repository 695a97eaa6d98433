/* Ranks: 1 2 3 5. Communicators by colour, in the order of keys. */
#include "check.h"

static void program(void) {
    MPI_Comm part;
    int at, of, value = 10 * rank, all[5] = {0};
    for (int colours = 1; colours < 4; colours++) {
        MPI_Comm_split(MPI_COMM_WORLD, rank % colours, -rank, &part);
        MPI_Comm_rank(part, &at);
        MPI_Comm_size(part, &of);
        say("%d of %d", at, of);
        MPI_Allgather(&value, 1, MPI_INT, all, 1, MPI_INT, part);
        ints("", all, of);
        MPI_Comm_free(&part);
    }
    MPI_Comm_split(MPI_COMM_WORLD, 7, 0, &part);
    MPI_Comm_rank(part, &at);
    say("equal keys: %d\n", at);
    MPI_Comm_free(&part);
}
