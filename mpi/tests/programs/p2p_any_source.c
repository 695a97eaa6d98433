/* Ranks: 2 3 5. Rank 0 receives from any rank, and sums by source. */
#include "check.h"

static void program(void) {
    int value, sums[5] = {0}, counts[5] = {0};
    MPI_Status status;
    if (rank != 0) {
        for (int i = 0; i < 10; i++) {
            value = 100 * rank + i;
            MPI_Send(&value, 1, MPI_INT, 0, i, MPI_COMM_WORLD);
        }
        return;
    }
    for (int i = 0; i < 10 * (size - 1); i++) {
        MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        if (value != 100 * status.MPI_SOURCE + status.MPI_TAG) say("wrong %d\n", value);
        if (status.MPI_TAG != counts[status.MPI_SOURCE]++) say("wrong order\n");
        sums[status.MPI_SOURCE] += value;
    }
    ints("sums", sums, size);
}
