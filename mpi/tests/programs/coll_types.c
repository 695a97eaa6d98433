/* Ranks: 2 3. Collectives of columns: each rank gives a column, and gets a row of them. */
#include "check.h"

static void program(void) {
    int matrix[3][3], in[9], rows[3][3] = {{0}};
    MPI_Datatype column, narrow;
    fill(matrix[0], 9, 10 * rank);
    MPI_Type_vector(3, 1, 3, MPI_INT, &column);
    MPI_Type_create_resized(column, 0, sizeof(int), &narrow);
    MPI_Type_commit(&column);
    MPI_Type_commit(&narrow);
    fill(in, 9, -20);
    MPI_Gather(matrix[0] + 1, 1, column, in, 3, MPI_INT, 0, MPI_COMM_WORLD);
    ints("gather", in, 9);
    MPI_Allgather(matrix[0], 3, MPI_INT, rows, 1, narrow, MPI_COMM_WORLD);
    ints("allgather", rows[0], 9);
    MPI_Scatter(matrix, 1, narrow, in, 3, MPI_INT, 1, MPI_COMM_WORLD);
    ints("scatter", in, 3);
    memset(rows, 0, sizeof rows);
    MPI_Alltoall(matrix, 1, narrow, rows, 1, narrow, MPI_COMM_WORLD);
    ints("alltoall", rows[0], 9);
    int counts[3] = {1, 1, 1}, places[3] = {2, 0, 1};
    memset(rows, 0, sizeof rows);
    MPI_Allgatherv(matrix[0], 3, MPI_INT, rows, counts, places, narrow, MPI_COMM_WORLD);
    ints("allgatherv", rows[0], 9);
    MPI_Allreduce(matrix, in, 3, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    ints("allreduce", in, 3);
    MPI_Type_free(&column);
    MPI_Type_free(&narrow);
}
