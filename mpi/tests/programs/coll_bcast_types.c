/* Ranks: 2 3. The root sends a column, the others receive a row. */
#include "check.h"

static void program(void) {
    int matrix[5][4], row[5] = {0};
    MPI_Datatype column;
    fill(matrix[0], 20, 0);
    MPI_Type_vector(5, 1, 4, MPI_INT, &column);
    MPI_Type_commit(&column);
    for (int root = 0; root < size; root++) {
        if (rank == root) MPI_Bcast(matrix[0] + root, 1, column, root, MPI_COMM_WORLD);
        else MPI_Bcast(row, 5, MPI_INT, root, MPI_COMM_WORLD);
        ints("row", row, 5);
    }
    MPI_Type_free(&column);
}
