/* Ranks: 2. Contiguous datatypes, also of contiguous ones. */
#include "check.h"

static void program(void) {
    int values[24] = {0};
    MPI_Datatype three, six;
    MPI_Status status;
    MPI_Type_contiguous(3, MPI_INT, &three);
    MPI_Type_contiguous(2, three, &six);
    MPI_Type_commit(&three);
    MPI_Type_commit(&six);
    if (rank == 0) {
        fill(values, 24, 1);
        MPI_Send(values, 2, six, 1, 0, MPI_COMM_WORLD);
    } else {
        MPI_Recv(values, 8, three, 0, 0, MPI_COMM_WORLD, &status);
        ints("values", values, 24);
        status_of("six", &status, six);
        status_of("three", &status, three);
        status_of("int", &status, MPI_INT);
    }
    MPI_Type_free(&three);
    MPI_Type_free(&six);
    say("null: %d\n", six == MPI_DATATYPE_NULL);
}
