/* Ranks: 1 2 3 5. An operation of the program that commutes. */
#include "check.h"

static void norm(void *in, void *inout, int *length, MPI_Datatype *datatype) {
    double *from = in, *to = inout;
    for (int i = 0; i < *length; i++) to[i] = from[i] > to[i] ? from[i] : to[i] + 0.0;
    if (*datatype != MPI_DOUBLE) say("another datatype\n");
}
static void program(void) {
    MPI_Op op;
    int commutes;
    double out[3] = {rank, 10 - rank, rank % 2}, in[3] = {-1, -1, -1};
    MPI_Op_create(norm, 1, &op);
    MPI_Op_commutative(op, &commutes);
    say("commutes %d\n", commutes);
    MPI_Allreduce(out, in, 3, MPI_DOUBLE, op, MPI_COMM_WORLD);
    doubles("allreduce", in, 3);
    in[0] = in[1] = in[2] = -1;
    MPI_Reduce(out, in, 3, MPI_DOUBLE, op, size - 1, MPI_COMM_WORLD);
    doubles("reduce", in, 3);
    MPI_Scan(out, in, 3, MPI_DOUBLE, op, MPI_COMM_WORLD);
    doubles("scan", in, 3);
    MPI_Op_free(&op);
    say("null %d\n", op == MPI_OP_NULL);
    MPI_Op_commutative(MPI_SUM, &commutes);
    say("sum commutes %d\n", commutes);
    MPI_Op_commutative(MPI_REPLACE, &commutes);
    say("replace commutes %d\n", commutes);
}
