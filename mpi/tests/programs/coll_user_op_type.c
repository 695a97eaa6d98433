/* Ranks: 2 3. An operation on a datatype with gaps, which stay as they were. */
#include "check.h"

struct item { int value; int gap; double weight; };
static void add(void *in, void *inout, int *length, MPI_Datatype *datatype) {
    struct item *from = in, *to = inout;
    MPI_Aint lower, extent;
    MPI_Type_get_extent(*datatype, &lower, &extent);
    if (extent != sizeof(struct item)) say("another extent\n");
    for (int i = 0; i < *length; i++) {
        to[i].value += from[i].value;
        to[i].weight *= from[i].weight;
    }
}
static void program(void) {
    struct item out[3], in[3];
    int lengths[2] = {1, 1};
    MPI_Aint places[2] = {0, 8};
    MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE}, type;
    MPI_Op op;
    MPI_Type_create_struct(2, lengths, places, types, &type);
    MPI_Type_commit(&type);
    MPI_Op_create(add, 1, &op);
    for (int i = 0; i < 3; i++) {
        out[i] = (struct item){rank + i, 77, 1.5 + rank};
        in[i] = (struct item){0, 99, 0};
    }
    MPI_Allreduce(out, in, 3, type, op, MPI_COMM_WORLD);
    for (int i = 0; i < 3; i++) say("%d %g\n", in[i].value, in[i].weight);
    MPI_Scan(out, in, 3, type, op, MPI_COMM_WORLD);
    for (int i = 0; i < 3; i++) say("%d %g\n", in[i].value, in[i].weight);
    say("sent %d %g\n", out[0].value, out[0].weight);
    MPI_Type_free(&type);
    MPI_Op_free(&op);
}
