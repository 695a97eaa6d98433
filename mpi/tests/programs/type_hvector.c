/* Ranks: 2. A vector with a stride in bytes, also a negative one. */
#include "check.h"

static void program(void) {
    short values[20];
    MPI_Datatype forward, backward;
    for (int i = 0; i < 20; i++) values[i] = rank == 0 ? i : 0;
    MPI_Type_create_hvector(3, 2, 10, MPI_SHORT, &forward);
    MPI_Type_create_hvector(4, 1, -6, MPI_SHORT, &backward);
    MPI_Type_commit(&forward);
    MPI_Type_commit(&backward);
    if (rank == 0) {
        MPI_Send(values, 1, forward, 1, 0, MPI_COMM_WORLD);
        MPI_Send(values + 12, 1, backward, 1, 1, MPI_COMM_WORLD);
    } else {
        short in[6];
        MPI_Recv(in, 6, MPI_SHORT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < 6; i++) say("%d ", in[i]);
        MPI_Recv(values + 12, 1, backward, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < 20; i++) say("%d ", values[i]);
        say("\n");
    }
    MPI_Type_free(&forward);
    MPI_Type_free(&backward);
}
