/* Ranks: 1. The class of the error for each wrong argument of a constructor. */
#include "check.h"

static void program(void) {
    int lengths[2] = {1, -1}, places[2] = {0, 1}, sizes[2] = {4, 4}, starts[2] = {0, 0}, value;
    MPI_Datatype type = MPI_DATATYPE_NULL, basic = MPI_INT;
    errors_return();
    result("count", MPI_Type_contiguous(-1, MPI_INT, &type));
    result("null", MPI_Type_contiguous(1, MPI_DATATYPE_NULL, &type));
    result("vector", MPI_Type_vector(-2, 1, 1, MPI_INT, &type));
    result("vector blocks", MPI_Type_vector(2, -1, 1, MPI_INT, &type));
    result("indexed", MPI_Type_indexed(2, lengths, places, MPI_INT, &type));
    result("order", MPI_Type_create_subarray(2, sizes, sizes, starts, 77, MPI_INT, &type));
    result("free named", MPI_Type_free(&basic));
    type = MPI_DATATYPE_NULL;
    result("free null", MPI_Type_free(&type));
    result("commit null", MPI_Type_commit(&type));
    result("size of null", MPI_Type_size(MPI_DATATYPE_NULL, &value));
    result("contents of named", MPI_Type_get_contents(MPI_INT, 0, 0, 0, NULL, NULL, NULL));
    result("commit named", MPI_Type_commit(&basic));
}
