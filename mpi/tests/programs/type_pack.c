/* Ranks: 2. Values of several types are packed, sent as MPI_PACKED, and unpacked. */
#include "check.h"

static void program(void) {
    char buffer[200];
    int position = 0, number = 0, room;
    double values[3] = {0};
    MPI_Datatype vector;
    MPI_Status status;
    int matrix[9];
    fill(matrix, 9, rank == 0 ? 0 : 90);
    MPI_Type_vector(3, 1, 3, MPI_INT, &vector);
    MPI_Type_commit(&vector);
    if (rank == 0) {
        number = 3;
        for (int i = 0; i < 3; i++) values[i] = i * 1.5;
        MPI_Pack(&number, 1, MPI_INT, buffer, sizeof buffer, &position, MPI_COMM_WORLD);
        named("position", position);
        MPI_Pack(values, 3, MPI_DOUBLE, buffer, sizeof buffer, &position, MPI_COMM_WORLD);
        named("position", position);
        MPI_Pack(matrix, 1, vector, buffer, sizeof buffer, &position, MPI_COMM_WORLD);
        named("position", position);
        MPI_Pack_size(3, MPI_DOUBLE, MPI_COMM_WORLD, &room);
        say("room %d\n", room >= 24);
        MPI_Send(buffer, position, MPI_PACKED, 1, 0, MPI_COMM_WORLD);
    } else {
        MPI_Recv(buffer, sizeof buffer, MPI_PACKED, 0, 0, MPI_COMM_WORLD, &status);
        status_of("status", &status, MPI_PACKED);
        MPI_Unpack(buffer, sizeof buffer, &position, &number, 1, MPI_INT, MPI_COMM_WORLD);
        MPI_Unpack(buffer, sizeof buffer, &position, values, number, MPI_DOUBLE, MPI_COMM_WORLD);
        MPI_Unpack(buffer, sizeof buffer, &position, matrix, 1, vector, MPI_COMM_WORLD);
        named("position", position);
        doubles("values", values, 3);
        ints("matrix", matrix, 9);
    }
    MPI_Type_free(&vector);
}
