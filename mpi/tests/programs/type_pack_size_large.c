/* Ranks: 1. A size of packed elements that does not fit in an int is undefined. */
#include "check.h"

static void program(void) {
    int size;
    MPI_Count large;
    errors_return();
    result("int", MPI_Pack_size(INT32_MAX, MPI_DOUBLE, MPI_COMM_WORLD, &size));
    named("size", size);
    result("count", MPI_Pack_size_c(INT32_MAX, MPI_DOUBLE, MPI_COMM_WORLD, &large));
    say("size: %lld\n", (long long)large);
    result("fits", MPI_Pack_size(INT32_MAX, MPI_BYTE, MPI_COMM_WORLD, &size));
    named("size", size);
}
