/* Ranks: 1. The class of the error for each wrong argument of a communicator. */
#include "check.h"

static void program(void) {
    MPI_Comm copy = MPI_COMM_NULL;
    int value;
    errors_return();
    result("size", MPI_Comm_size(MPI_COMM_NULL, &value));
    result("rank", MPI_Comm_rank(MPI_COMM_NULL, &value));
    result("dup", MPI_Comm_dup(MPI_COMM_NULL, &copy));
    result("free", MPI_Comm_free(&copy));
    result("group", MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_NULL, &copy));
    result("compare", MPI_Comm_compare(MPI_COMM_WORLD, MPI_COMM_NULL, &value));
}
