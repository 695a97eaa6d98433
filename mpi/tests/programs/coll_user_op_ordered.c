/* Ranks: 1 2 3 5. An operation that does not commute: products of 2 by 2 matrices. */
#include "check.h"

static void multiply(void *in, void *inout, int *length, MPI_Datatype *datatype) {
    long *a = in, *b = inout;
    (void)datatype;
    for (int i = 0; i < *length; i++, a += 4, b += 4) {
        long c[4] = {a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3], a[2] * b[0] + a[3] * b[2], a[2] * b[1] + a[3] * b[3]};
        memcpy(b, c, sizeof c);
    }
}
static void show(const char *what, const long *values, int count) {
    say("%s:", what);
    for (int i = 0; i < count; i++) say(" %ld", values[i]);
    say("\n");
}
static void program(void) {
    MPI_Op op;
    MPI_Datatype matrix;
    long out[40], in[40];
    int counts[5] = {1, 1, 1, 1, 1};
    MPI_Type_contiguous(4, MPI_LONG, &matrix);
    MPI_Type_commit(&matrix);
    MPI_Op_create(multiply, 0, &op);
    for (int i = 0; i < 40; i++) out[i] = (rank + 1) * (i % 3) + i / 4 + (i % 4 == 1);
    for (int root = 0; root < size; root++) {
        memset(in, 0, sizeof in);
        MPI_Reduce(out, in, 2, matrix, op, root, MPI_COMM_WORLD);
        show("reduce", in, 8);
    }
    MPI_Allreduce(out, in, 2, matrix, op, MPI_COMM_WORLD);
    show("allreduce", in, 8);
    MPI_Scan(out, in, 2, matrix, op, MPI_COMM_WORLD);
    show("scan", in, 8);
    memset(in, 0, sizeof in);
    MPI_Exscan(out, in, 2, matrix, op, MPI_COMM_WORLD);
    show("exscan", in, 8);
    MPI_Reduce_scatter(out, in, counts, matrix, op, MPI_COMM_WORLD);
    show("reduce_scatter", in, 4);
    MPI_Reduce_scatter_block(out, in, 1, matrix, op, MPI_COMM_WORLD);
    show("reduce_scatter_block", in, 4);
    MPI_Op_free(&op);
    MPI_Type_free(&matrix);
}
