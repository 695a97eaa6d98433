/* Ranks: 2. Memory of the library can be sent from. */
#include "check.h"

static void program(void) {
    int *values;
    MPI_Alloc_mem(1000 * sizeof(int), MPI_INFO_NULL, &values);
    fill(values, 1000, 1000 * rank);
    MPI_Sendrecv_replace(values, 1000, MPI_INT, !rank, 0, !rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    say("%d %d\n", values[0], values[999]);
    MPI_Free_mem(values);
    MPI_Alloc_mem(0, MPI_INFO_NULL, &values);
    MPI_Free_mem(values);
}
