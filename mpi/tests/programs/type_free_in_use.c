/* Ranks: 2. A datatype that is freed while messages use it. */
#include "check.h"

static void program(void) {
    static int values[60000], in[60000];
    MPI_Datatype vector;
    MPI_Request request;
    fill(values, 60000, 0);
    MPI_Type_vector(20000, 1, 3, MPI_INT, &vector);
    MPI_Type_commit(&vector);
    if (rank == 0) MPI_Isend(values, 1, vector, 1, 0, MPI_COMM_WORLD, &request);
    else MPI_Irecv(in, 1, vector, 0, 0, MPI_COMM_WORLD, &request);
    MPI_Type_free(&vector);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (rank == 1) ints("in", in + 59990, 10);
}
