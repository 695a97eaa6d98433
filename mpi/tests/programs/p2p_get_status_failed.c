/* Ranks: 1. The calls that look at requests say that a receive has failed, as often as they are
 * called. */
#include "check.h"

static void program(void) {
    int values[4] = {1, 2, 3, 4}, into[2], flag, count, index, indices[2];
    MPI_Request requests[2];
    MPI_Status statuses[2] = {{.MPI_ERROR = MPI_ERR_PENDING}, {.MPI_ERROR = MPI_ERR_PENDING}};
    errors_return();
    for (int i = 0; i < 2; i++) MPI_Irecv(into + i, 1, MPI_INT, 0, i, MPI_COMM_SELF, requests + i);
    MPI_Send(values, 4, MPI_INT, 0, 0, MPI_COMM_SELF);
    MPI_Send(values, 1, MPI_INT, 0, 1, MPI_COMM_SELF);
    for (int i = 0; i < 2; i++) {
        result("one", MPI_Request_get_status(requests[0], &flag, statuses));
        say("flag: %d\n", flag);
        named("source", statuses[0].MPI_SOURCE);
        named("tag", statuses[0].MPI_TAG);
        result("error", statuses[0].MPI_ERROR);
    }
    result("right", MPI_Request_get_status(requests[1], &flag, MPI_STATUS_IGNORE));
    result("any", MPI_Request_get_status_any(2, requests, &index, &flag, statuses));
    say("flag and index: %d %d\n", flag, index);
    result("all", MPI_Request_get_status_all(2, requests, &flag, statuses));
    say("flag: %d\n", flag);
    for (int i = 0; i < 2; i++) result("error", statuses[i].MPI_ERROR);
    result("some", MPI_Request_get_status_some(2, requests, &count, indices, statuses));
    say("count: %d\n", count);
    for (int i = 0; i < count; i++) result("error", statuses[i].MPI_ERROR);
    result("test", MPI_Test(requests, &flag, statuses));
    say("flag and null: %d %d\n", flag, requests[0] == MPI_REQUEST_NULL);
    result("wait", MPI_Wait(requests + 1, statuses));
}
