/* Ranks: 2. A resized column interleaves columns, and a resized int has gaps. */
#include "check.h"

static void program(void) {
    int matrix[3][4], in[12];
    MPI_Datatype column, resized, sparse;
    MPI_Aint lower, extent;
    MPI_Type_vector(3, 1, 4, MPI_INT, &column);
    MPI_Type_create_resized(column, 0, sizeof(int), &resized);
    MPI_Type_create_resized(MPI_INT, -4, 12, &sparse);
    MPI_Type_commit(&resized);
    MPI_Type_commit(&sparse);
    MPI_Type_get_extent(resized, &lower, &extent);
    say("%ld %ld\n", (long)lower, (long)extent);
    MPI_Type_get_extent(sparse, &lower, &extent);
    say("%ld %ld\n", (long)lower, (long)extent);
    MPI_Type_get_true_extent(sparse, &lower, &extent);
    say("%ld %ld\n", (long)lower, (long)extent);
    fill(matrix[0], 12, 0);
    if (rank == 0) {
        MPI_Send(matrix, 4, resized, 1, 0, MPI_COMM_WORLD);
        MPI_Send(matrix, 4, sparse, 1, 1, MPI_COMM_WORLD);
    } else {
        MPI_Recv(in, 12, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        ints("transposed", in, 12);
        MPI_Recv(in, 12, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        ints("each third", in, 4);
    }
    MPI_Type_free(&column);
    MPI_Type_free(&resized);
    MPI_Type_free(&sparse);
}
