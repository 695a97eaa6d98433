/* Ranks: 1. The class of the error for each wrong argument of Pack. */
#include "check.h"

static void program(void) {
    char buffer[10];
    int position = 0, values[4] = {0};
    errors_return();
    result("fits", MPI_Pack(values, 2, MPI_INT, buffer, 10, &position, MPI_COMM_WORLD));
    named("position", position);
    position = 0;
    result("null", MPI_Pack(values, 1, MPI_DATATYPE_NULL, buffer, 10, &position, MPI_COMM_WORLD));
    result("count", MPI_Pack(values, -1, MPI_INT, buffer, 10, &position, MPI_COMM_WORLD));
}
