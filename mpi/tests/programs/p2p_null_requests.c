/* Ranks: 1. What each form of wait and test says of null requests, and of none. */
#include "check.h"

static void program(void) {
    MPI_Request none[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status statuses[2];
    int flag = 5, index = 5, count = 5, indices[2];
    for (int length = 0; length <= 2; length += 2) {
        say("of %d\n", length);
        MPI_Waitall(length, none, statuses);
        if (length) status_of("waitall", statuses + 1, MPI_INT);
        MPI_Testall(length, none, &flag, statuses);
        say("testall %d\n", flag);
        MPI_Waitany(length, none, &index, statuses);
        named("waitany", index);
        MPI_Testany(length, none, &index, &flag, statuses);
        say("testany %d\n", flag);
        named("index", index);
        MPI_Waitsome(length, none, &count, indices, statuses);
        named("waitsome", count);
        MPI_Testsome(length, none, &count, indices, statuses);
        named("testsome", count);
    }
    MPI_Request_get_status(none[0], &flag, statuses);
    say("get_status %d\n", flag);
    status_of("status", statuses, MPI_INT);
}
