/* Ranks: 2. The statuses of several requests, which stay as they are. */
#include "check.h"

static void program(void) {
    int value[2] = {0, 0}, flag, index, count, indices[3];
    MPI_Request requests[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status statuses[3], status;
    MPI_Request_get_status_any(3, requests, &index, &flag, &status);
    say("none active: done %d, ", flag);
    named("index", index);
    MPI_Request_get_status_some(3, requests, &count, indices, statuses);
    named("none active: count", count);
    MPI_Request_get_status_all(3, requests, &flag, statuses);
    say("none active: done %d\n", flag);
    if (rank == 0) {
        MPI_Irecv(&value[0], 1, MPI_INT, 1, 1, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(&value[1], 1, MPI_INT, 1, 2, MPI_COMM_WORLD, &requests[2]);
        MPI_Request_get_status_all(3, requests, &flag, MPI_STATUSES_IGNORE);
        say("nothing has come: done %d\n", flag);
        MPI_Request_get_status_any(3, requests, &index, &flag, MPI_STATUS_IGNORE);
        say("nothing has come: done %d\n", flag);
        MPI_Request_get_status_some(3, requests, &count, indices, MPI_STATUSES_IGNORE);
        say("nothing has come: count %d\n", count);
        MPI_Barrier(MPI_COMM_WORLD);
        do MPI_Request_get_status_any(3, requests, &index, &flag, &status);
        while (!flag);
        say("index %d\n", index);
        status_of("first", &status, MPI_INT);
        MPI_Barrier(MPI_COMM_WORLD);
        do MPI_Request_get_status_all(3, requests, &flag, statuses);
        while (!flag);
        status_of("all", &statuses[0], MPI_INT);
        status_of("all", &statuses[2], MPI_INT);
        MPI_Request_get_status_some(3, requests, &count, indices, statuses);
        say("count %d\n", count);
        ints("indices", indices, count);
        say("there %d\n", requests[0] != MPI_REQUEST_NULL);
        MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
        ints("values", value, 2);
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
        value[0] = 5;
        MPI_Send(&value[0], 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Send(&value[0], 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
    }
}
