/* Ranks: 2. A struct that was packed is received as a struct, and the other way round. */
#include "check.h"

static void program(void) {
    struct { int number; double value; } thing = {0};
    char buffer[100];
    int lengths[2] = {1, 1}, position = 0;
    MPI_Aint places[2] = {0, 8};
    MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE}, type;
    MPI_Type_create_struct(2, lengths, places, types, &type);
    MPI_Type_commit(&type);
    if (rank == 0) {
        thing.number = 4;
        thing.value = 2.5;
        MPI_Pack(&thing, 1, type, buffer, sizeof buffer, &position, MPI_COMM_WORLD);
        MPI_Send(buffer, position, MPI_PACKED, 1, 0, MPI_COMM_WORLD);
        MPI_Send(&thing, 1, type, 1, 1, MPI_COMM_WORLD);
    } else {
        MPI_Recv(&thing, 1, type, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        say("%d %g\n", thing.number, thing.value);
        thing.number = 0;
        MPI_Recv(buffer, sizeof buffer, MPI_PACKED, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Unpack(buffer, sizeof buffer, &position, &thing, 1, type, MPI_COMM_WORLD);
        say("%d %g, position %d\n", thing.number, thing.value, position);
    }
    MPI_Type_free(&type);
}
