/* Ranks: 1 2. Attributes that the library gives. */
#include "check.h"

static void program(void) {
    int flag, *value;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &flag);
    say("tags %d %d\n", flag, *value >= 32767);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_HOST, &value, &flag);
    say("host %d\n", flag);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_IO, &value, &flag);
    say("io %d\n", flag);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, &value, &flag);
    say("clock %d\n", flag);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &value, &flag);
    say("codes %d %d\n", flag, *value >= MPI_ERR_LASTCODE);
    MPI_Comm copy;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_get_attr(copy, MPI_TAG_UB, &value, &flag);
    say("tags of a copy %d\n", flag);
    MPI_Comm_free(&copy);
}
