/* Ranks: 2. Messages of one tag do not overtake each other, whatever their lengths are. */
#include "check.h"

static void program(void) {
    static int values[40000];
    const int lengths[] = {1, 40000, 3, 2000, 0, 30000, 5, 500, 10000, 2};
    MPI_Status status;
    for (int i = 0; i < LENGTH(lengths); i++) {
        if (rank == 0) {
            values[0] = i;
            MPI_Send(values, lengths[i], MPI_INT, 1, 1, MPI_COMM_WORLD);
        } else {
            MPI_Recv(values, LENGTH(values), MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
            status_of("status", &status, MPI_INT);
            if (lengths[i]) ints("first", values, 1);
        }
    }
}
