/* Ranks: 1 2 3. Arrays move around the ring in place, also as a vector. */
#include "check.h"

static void program(void) {
    int next = (rank + 1) % size, previous = (rank + size - 1) % size, values[9];
    MPI_Datatype vector;
    MPI_Status status;
    fill(values, 9, 100 * rank);
    MPI_Sendrecv_replace(values, 4, MPI_INT, next, 1, previous, 1, MPI_COMM_WORLD, &status);
    ints("values", values, 9);
    status_of("status", &status, MPI_INT);
    MPI_Type_vector(3, 1, 3, MPI_INT, &vector);
    MPI_Type_commit(&vector);
    MPI_Sendrecv_replace(values + 1, 1, vector, next, 2, previous, 2, MPI_COMM_WORLD, &status);
    ints("values", values, 9);
    status_of("status", &status, vector);
    MPI_Type_free(&vector);
}
