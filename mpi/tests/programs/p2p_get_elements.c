/* Ranks: 1. Elements of partial structs. */
#include "check.h"

static void program(void) {
    struct pair { int number; double value; } in[4];
    int lengths[2] = {1, 1}, count;
    MPI_Aint places[2] = {0, 8};
    MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE}, pair;
    MPI_Request request;
    MPI_Status status;
    MPI_Count many;
    char out[64] = {0};
    const int sizes[] = {0, 4, 12, 16, 24, 28, 36, 5};
    MPI_Type_create_struct(2, lengths, places, types, &pair);
    MPI_Type_commit(&pair);
    for (int i = 0; i < LENGTH(sizes); i++) {
        MPI_Isend(out, sizes[i], MPI_BYTE, 0, 0, MPI_COMM_SELF, &request);
        MPI_Recv(in, 4, pair, 0, 0, MPI_COMM_SELF, &status);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Get_count(&status, pair, &count);
        named("count", count);
        MPI_Get_elements(&status, pair, &count);
        named("elements", count);
        MPI_Get_elements_c(&status, pair, &many);
        named("elements_c", (int)many);
    }
    MPI_Type_free(&pair);
}
