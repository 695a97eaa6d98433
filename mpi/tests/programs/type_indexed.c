/* Ranks: 2. Indexed blocks, not in the order of memory, one of them empty. */
#include "check.h"

static void program(void) {
    int values[20], lengths[4] = {2, 0, 3, 1}, places[4] = {10, 3, 0, 7};
    MPI_Datatype indexed;
    fill(values, 20, rank == 0 ? 0 : 100);
    MPI_Type_indexed(4, lengths, places, MPI_INT, &indexed);
    MPI_Type_commit(&indexed);
    if (rank == 0) {
        MPI_Send(values, 1, indexed, 1, 0, MPI_COMM_WORLD);
        MPI_Send(values, 6, MPI_INT, 1, 1, MPI_COMM_WORLD);
    } else {
        int in[6];
        MPI_Recv(in, 6, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        ints("in", in, 6);
        MPI_Recv(values, 1, indexed, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        ints("values", values, 20);
    }
    MPI_Type_free(&indexed);
}
