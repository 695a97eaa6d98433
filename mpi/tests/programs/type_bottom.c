/* Ranks: 2. Absolute addresses from MPI_BOTTOM. */
#include "check.h"

static void program(void) {
    static int number = 0;
    double values[3] = {0};
    int lengths[2] = {1, 3};
    MPI_Aint places[2];
    MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE}, type;
    MPI_Get_address(&number, places);
    MPI_Get_address(values, places + 1);
    MPI_Type_create_struct(2, lengths, places, types, &type);
    MPI_Type_commit(&type);
    if (rank == 0) {
        number = 5;
        for (int i = 0; i < 3; i++) values[i] = i + 0.5;
        MPI_Send(MPI_BOTTOM, 1, type, 1, 0, MPI_COMM_WORLD);
        MPI_Bcast(MPI_BOTTOM, 1, type, 0, MPI_COMM_WORLD);
    } else {
        MPI_Recv(MPI_BOTTOM, 1, type, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        ints("number", &number, 1);
        doubles("values", values, 3);
        number = 0;
        MPI_Bcast(MPI_BOTTOM, 1, type, 0, MPI_COMM_WORLD);
        ints("number", &number, 1);
    }
    MPI_Type_free(&type);
}
