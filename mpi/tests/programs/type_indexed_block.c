/* Ranks: 2. Blocks of one length at given places, in elements and in bytes. */
#include "check.h"

static void program(void) {
    int values[20], places[3] = {9, 1, 5};
    MPI_Aint bytes_places[3] = {0, 12, 44};
    MPI_Datatype types[2];
    fill(values, 20, rank == 0 ? 0 : 100);
    MPI_Type_create_indexed_block(3, 2, places, MPI_INT, types);
    MPI_Type_create_hindexed_block(3, 2, bytes_places, MPI_INT, types + 1);
    for (int i = 0; i < 2; i++) {
        MPI_Type_commit(types + i);
        if (rank == 0) {
            MPI_Send(values, 1, types[i], 1, i, MPI_COMM_WORLD);
        } else {
            int in[6];
            MPI_Recv(in, 6, MPI_INT, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            ints("in", in, 6);
        }
        MPI_Type_free(types + i);
    }
}
