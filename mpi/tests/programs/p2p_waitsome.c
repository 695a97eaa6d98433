/* Ranks: 3. Waitsome takes all messages of the others in as many calls as it needs. */
#include "check.h"

static void program(void) {
    int values[6], indices[6], count, total = 0;
    MPI_Request requests[6];
    MPI_Status statuses[6];
    if (rank != 0) {
        for (int i = 0; i < 3; i++) {
            int value = 10 * rank + i;
            MPI_Send(&value, 1, MPI_INT, 0, i, MPI_COMM_WORLD);
        }
        return;
    }
    for (int i = 0; i < 6; i++) {
        MPI_Irecv(values + i, 1, MPI_INT, 1 + i / 3, i % 3, MPI_COMM_WORLD, requests + i);
    }
    while (total < 6) {
        MPI_Waitsome(6, requests, &count, indices, statuses);
        for (int i = 0; i < count; i++) {
            int at = indices[i];
            if (statuses[i].MPI_SOURCE != 1 + at / 3 || statuses[i].MPI_TAG != at % 3) say("wrong %d\n", at);
        }
        total += count;
    }
    ints("values", values, 6);
    MPI_Waitsome(6, requests, &count, indices, statuses);
    named("count", count);
}
