/* Ranks: 2. Testany finds nothing, then one, then only null requests. */
#include "check.h"

static void program(void) {
    int values[2], index = 0, flag;
    MPI_Request requests[2];
    MPI_Status status;
    if (rank == 0) {
        MPI_Barrier(MPI_COMM_WORLD);
        for (int i = 0; i < 2; i++) MPI_Send(&i, 1, MPI_INT, 1, i, MPI_COMM_WORLD);
        return;
    }
    for (int i = 0; i < 2; i++) MPI_Irecv(values + i, 1, MPI_INT, 0, i, MPI_COMM_WORLD, requests + i);
    MPI_Testany(2, requests, &index, &flag, &status);
    say("before: %d ", flag);
    named("index", index);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int sum = 0, found = 0; found < 2; found += flag) {
        MPI_Testany(2, requests, &index, &flag, &status);
        if (flag) sum += index;
        if (flag && found == 1) say("sum of indices: %d\n", sum);
    }
    ints("values", values, 2);
    MPI_Testany(2, requests, &index, &flag, &status);
    say("after: %d ", flag);
    named("index", index);
    status_of("status", &status, MPI_INT);
}
