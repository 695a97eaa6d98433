/* Ranks: 2. The class of the error for each wrong argument of a collective. */
#include "check.h"

static void program(void) {
    int value = 0, in[2];
    errors_return();
    result("root", MPI_Bcast(&value, 1, MPI_INT, size, MPI_COMM_WORLD));
    result("root", MPI_Reduce(&value, in, 1, MPI_INT, MPI_SUM, -1, MPI_COMM_WORLD));
    result("count", MPI_Bcast(&value, -1, MPI_INT, 0, MPI_COMM_WORLD));
    result("datatype", MPI_Bcast(&value, 1, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD));
    result("operation", MPI_Allreduce(&value, in, 1, MPI_INT, MPI_OP_NULL, MPI_COMM_WORLD));
    result("unfit", MPI_Allreduce(&value, in, 1, MPI_FLOAT, MPI_BAND, MPI_COMM_WORLD));
    result("unfit", MPI_Allreduce(&value, in, 1, MPI_INT, MPI_MAXLOC, MPI_COMM_WORLD));
    result("comm", MPI_Barrier(MPI_COMM_NULL));
    MPI_Op op = MPI_SUM;
    result("free", MPI_Op_free(&op));
    op = MPI_OP_NULL;
    result("free null", MPI_Op_free(&op));
    MPI_Barrier(MPI_COMM_WORLD);
}
