/* Ranks: 2. A struct whose members are not in the order of memory arrives in the order of the datatype. */
#include "check.h"

static void program(void) {
    char out[16], in[16];
    int lengths[3] = {2, 1, 3};
    MPI_Aint places[3] = {12, 4, 8};
    MPI_Datatype types[3] = {MPI_CHAR, MPI_INT, MPI_CHAR}, type;
    for (int i = 0; i < 16; i++) out[i] = i;
    memset(in, -1, sizeof in);
    MPI_Type_create_struct(3, lengths, places, types, &type);
    MPI_Type_commit(&type);
    if (rank == 0) {
        MPI_Send(out, 1, type, 1, 0, MPI_COMM_WORLD);
        MPI_Send(out, 1, type, 1, 1, MPI_COMM_WORLD);
    } else {
        MPI_Recv(in, 1, type, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        bytes("the same type", in, 16);
        MPI_Recv(in, 16, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        bytes("packed", in, 9);
    }
    MPI_Type_free(&type);
}
