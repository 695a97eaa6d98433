/* Ranks: 1 2 3. All ranks of one machine share memory. */
#include "check.h"

static void program(void) {
    MPI_Comm part;
    int of, at;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, -rank, MPI_INFO_NULL, &part);
    MPI_Comm_size(part, &of);
    MPI_Comm_rank(part, &at);
    say("%d of %d\n", at, of);
    MPI_Comm_free(&part);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_UNDEFINED, 0, MPI_INFO_NULL, &part);
    say("null %d\n", part == MPI_COMM_NULL);
}
