/* Ranks: 1 2 3. The root of a gather and of a scatter has its part in place. */
#include "check.h"

static void program(void) {
    int in[6], part[2];
    for (int root = 0; root < size; root++) {
        fill(in, 6, -10);
        fill(part, 2, 10 * rank);
        if (rank == root) {
            fill(in + 2 * rank, 2, 10 * rank);
            MPI_Gather(MPI_IN_PLACE, 0, MPI_INT, in, 2, MPI_INT, root, MPI_COMM_WORLD);
        } else {
            MPI_Gather(part, 2, MPI_INT, NULL, 0, MPI_INT, root, MPI_COMM_WORLD);
        }
        ints("gather", in, 2 * size);
        fill(in, 6, 50);
        fill(part, 2, -1);
        if (rank == root) MPI_Scatter(in, 2, MPI_INT, MPI_IN_PLACE, 0, MPI_INT, root, MPI_COMM_WORLD);
        else MPI_Scatter(NULL, 0, MPI_INT, part, 2, MPI_INT, root, MPI_COMM_WORLD);
        ints("scatter", part, 2);
    }
}
