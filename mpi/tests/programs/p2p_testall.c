/* Ranks: 2. Testall is false until all messages are there. */
#include "check.h"

static void program(void) {
    int values[2], flag;
    MPI_Request requests[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status statuses[3];
    if (rank == 0) {
        int value = 5;
        MPI_Send(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Send(&value, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
        return;
    }
    MPI_Irecv(values, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, requests);
    MPI_Irecv(values + 1, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, requests + 2);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 10; i++) MPI_Testall(3, requests, &flag, statuses);
    say("before: %d, requests %d %d\n", flag, requests[0] != MPI_REQUEST_NULL, requests[2] != MPI_REQUEST_NULL);
    MPI_Barrier(MPI_COMM_WORLD);
    while (!flag) MPI_Testall(3, requests, &flag, statuses);
    ints("values", values, 2);
    for (int i = 0; i < 3; i++) status_of("status", statuses + i, MPI_INT);
    MPI_Testall(3, requests, &flag, statuses);
    say("of null: %d\n", flag);
}
