/* Ranks: 2. Several vectors after each other overlap in their extents. */
#include "check.h"

static void program(void) {
    int values[40];
    MPI_Datatype vector;
    fill(values, 40, 0);
    MPI_Type_vector(3, 2, 4, MPI_INT, &vector);
    MPI_Type_commit(&vector);
    if (rank == 0) {
        MPI_Send(values, 3, vector, 1, 0, MPI_COMM_WORLD);
    } else {
        int in[18];
        MPI_Recv(in, 18, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        ints("in", in, 18);
    }
    MPI_Type_free(&vector);
}
