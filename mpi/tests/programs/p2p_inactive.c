/* Ranks: 1. Persistent requests that were not started count as null requests. */
#include "check.h"

static void program(void) {
    MPI_Request inactive[2];
    MPI_Status statuses[2];
    int flag = 5, index = 5, count = 5, indices[2], value;
    MPI_Recv_init(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, inactive);
    MPI_Send_init(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, inactive + 1);
    MPI_Wait(inactive, statuses);
    status_of("wait", statuses, MPI_INT);
    MPI_Test(inactive, &flag, statuses);
    say("test %d\n", flag);
    MPI_Waitall(2, inactive, statuses);
    status_of("waitall", statuses + 1, MPI_INT);
    MPI_Waitany(2, inactive, &index, statuses);
    named("waitany", index);
    MPI_Testany(2, inactive, &index, &flag, statuses);
    say("testany %d\n", flag);
    MPI_Waitsome(2, inactive, &count, indices, statuses);
    named("waitsome", count);
    MPI_Testsome(2, inactive, &count, indices, statuses);
    named("testsome", count);
    MPI_Request_get_status(inactive[0], &flag, statuses);
    say("get_status %d, handles %d\n", flag, inactive[0] != MPI_REQUEST_NULL);
    MPI_Request_free(inactive);
    MPI_Request_free(inactive + 1);
}
