/* Ranks: 1 2 3. The root of a reduction has its values in place. */
#include "check.h"

static void program(void) {
    int values[3];
    for (int root = 0; root < size; root++) {
        fill(values, 3, 10 * rank);
        if (rank == root) MPI_Reduce(MPI_IN_PLACE, values, 3, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
        else MPI_Reduce(values, NULL, 3, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
        ints("values", values, 3);
    }
    fill(values, 3, rank);
    MPI_Allreduce(MPI_IN_PLACE, values, 3, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    ints("allreduce", values, 3);
    fill(values, 3, rank);
    MPI_Scan(MPI_IN_PLACE, values, 3, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    ints("scan", values, 3);
    fill(values, 3, rank);
    MPI_Exscan(MPI_IN_PLACE, values, 3, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    ints("exscan", values, rank ? 3 : 0);
}
