/* Ranks: 2. A message is longer than a vector has room for, and what the vector skips stays. */
#include "check.h"

static void program(void) {
    int values[8], out[8];
    MPI_Datatype vector;
    MPI_Status status;
    errors_return();
    fill(values, 8, -8);
    fill(out, 8, 1);
    MPI_Type_vector(2, 1, 3, MPI_INT, &vector);
    MPI_Type_commit(&vector);
    if (rank == 0) {
        MPI_Send(out, 4, MPI_INT, 1, 0, MPI_COMM_WORLD);
        MPI_Send(out, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    } else {
        result("long", MPI_Recv(values, 1, vector, 0, 0, MPI_COMM_WORLD, &status));
        fill(values, 8, -8);
        result("short", MPI_Recv(values, 2, vector, 0, 0, MPI_COMM_WORLD, &status));
        ints("values", values, 8);
        status_of("vectors", &status, vector);
        status_of("ints", &status, MPI_INT);
    }
    MPI_Type_free(&vector);
}
