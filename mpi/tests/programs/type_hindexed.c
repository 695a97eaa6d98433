/* Ranks: 2. Indexed blocks at places in bytes. */
#include "check.h"

static void program(void) {
    int values[20], lengths[3] = {1, 2, 3};
    MPI_Aint places[3] = {40, 0, 16};
    MPI_Datatype indexed;
    fill(values, 20, rank == 0 ? 0 : 100);
    MPI_Type_create_hindexed(3, lengths, places, MPI_INT, &indexed);
    MPI_Type_commit(&indexed);
    if (rank == 0) {
        MPI_Send(values + 1, 1, indexed, 1, 0, MPI_COMM_WORLD);
    } else {
        MPI_Recv(values, 1, indexed, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        ints("values", values, 20);
    }
    MPI_Type_free(&indexed);
}
