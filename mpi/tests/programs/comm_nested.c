/* Ranks: 3 5. Parts of parts, with collectives and messages in each. */
#include "check.h"

static void program(void) {
    MPI_Comm half, quarter;
    int at, of, sum = rank, first = rank;
    MPI_Comm_split(MPI_COMM_WORLD, rank < size / 2, rank, &half);
    MPI_Comm_rank(half, &at);
    MPI_Comm_split(half, at % 2, -at, &quarter);
    MPI_Comm_rank(quarter, &at);
    MPI_Comm_size(quarter, &of);
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, quarter);
    MPI_Bcast(&first, 1, MPI_INT, 0, quarter);
    say("%d of %d, sum %d, first %d\n", at, of, sum, first);
    MPI_Sendrecv_replace(&first, 1, MPI_INT, (at + 1) % of, 0, (at + of - 1) % of, 0, quarter, MPI_STATUS_IGNORE);
    MPI_Comm_free(&half);
    MPI_Scan(&rank, &sum, 1, MPI_INT, MPI_SUM, quarter);
    say("scan %d\n", sum);
    MPI_Comm_free(&quarter);
}
