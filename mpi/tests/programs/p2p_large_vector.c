/* Ranks: 2. A vector of 1 MiB arrives as an array, and an array as a vector. */
#include "check.h"

static void program(void) {
    enum { count = 1 << 17 };
    double *sparse = calloc(2 * count, sizeof(double)), *dense = calloc(count, sizeof(double));
    MPI_Datatype vector;
    MPI_Type_vector(count, 1, 2, MPI_DOUBLE, &vector);
    MPI_Type_commit(&vector);
    if (rank == 0) {
        for (int i = 0; i < 2 * count; i++) sparse[i] = i;
        MPI_Send(sparse, 1, vector, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(dense, count, MPI_DOUBLE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(dense, count, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(dense, count, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD);
        MPI_Sendrecv(dense, count, MPI_DOUBLE, 1, 2, sparse, 1, vector, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    int wrong = 0;
    for (int i = 0; i < count; i++) wrong += dense[i] != 2 * i || sparse[2 * i] != 2 * i;
    say("wrong: %d, gap %g\n", wrong, sparse[1]);
    MPI_Type_free(&vector);
    free(sparse);
    free(dense);
}
