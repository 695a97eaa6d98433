/* Ranks: 2. A column of a matrix is sent, and arrives as a row and as a column. */
#include "check.h"

static void program(void) {
    double matrix[4][5], row[4] = {0};
    MPI_Datatype column;
    for (int i = 0; i < 20; i++) matrix[i / 5][i % 5] = rank == 0 ? i : -1;
    MPI_Type_vector(4, 1, 5, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    if (rank == 0) {
        MPI_Send(&matrix[0][2], 1, column, 1, 0, MPI_COMM_WORLD);
        MPI_Send(&matrix[0][3], 1, column, 1, 1, MPI_COMM_WORLD);
    } else {
        MPI_Recv(row, 4, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(&matrix[0][1], 1, column, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        doubles("row", row, 4);
        doubles("matrix", matrix[0], 20);
    }
    MPI_Type_free(&column);
}
