/* Ranks: 2. A duplicate outlives its original. */
#include "check.h"

static void program(void) {
    int values[6] = {0};
    MPI_Datatype vector, copy;
    MPI_Type_vector(3, 1, 2, MPI_INT, &vector);
    MPI_Type_commit(&vector);
    MPI_Type_dup(vector, &copy);
    MPI_Type_free(&vector);
    if (rank == 0) fill(values, 6, 1);
    if (rank == 0) MPI_Send(values, 1, copy, 1, 0, MPI_COMM_WORLD);
    else MPI_Recv(values, 1, copy, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    ints("values", values, 6);
    MPI_Type_free(&copy);
    MPI_Type_dup(MPI_INT, &copy);
    if (rank == 0) MPI_Send(values, 6, copy, 1, 0, MPI_COMM_WORLD);
    else MPI_Recv(values, 6, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    ints("values", values, 6);
    MPI_Type_free(&copy);
}
