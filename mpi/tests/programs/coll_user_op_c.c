/* Ranks: 1 3. An operation of the program that takes counts. */
#include "check.h"

static void add(void *in, void *inout, MPI_Count *length, MPI_Datatype *datatype) {
    (void)datatype;
    for (MPI_Count i = 0; i < *length; i++) ((int *)inout)[i] += 2 * ((int *)in)[i];
}
static void program(void) {
    MPI_Op op;
    int out[2] = {rank + 1, 5}, in[2] = {0};
    MPI_Op_create_c(add, 0, &op);
    MPI_Allreduce_c(out, in, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    ints("sum", in, 2);
    MPI_Scan_c(out, in, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    ints("max", in, 1);
    fill(in, 2, 1);
    MPI_Reduce_local_c(out, in, 2, MPI_INT, op);
    ints("local", in, 2);
    MPI_Op_free(&op);
}
