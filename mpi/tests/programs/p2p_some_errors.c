/* Ranks: 1. Waitsome and Testsome leave the errors of statuses alone, unless a request has failed. */
#include "check.h"

static int values[4] = {1, 2, 3, 4}, into[4];
static MPI_Request requests[2];
static MPI_Status statuses[2];

static void start(int first) {
    for (int i = 0; i < 2; i++) {
        statuses[i].MPI_ERROR = MPI_ERR_PENDING;
        MPI_Irecv(into + i, 1, MPI_INT, 0, i, MPI_COMM_SELF, requests + i);
    }
    MPI_Send(values, first, MPI_INT, 0, 0, MPI_COMM_SELF);
    MPI_Send(values, 1, MPI_INT, 0, 1, MPI_COMM_SELF);
}

static void errors(const char *what, int code, int count) {
    result(what, code);
    for (int i = 0; i < count; i++) result("error", statuses[i].MPI_ERROR);
}

static void program(void) {
    int count, indices[2];
    errors_return();
    start(1);
    errors("waitsome", MPI_Waitsome(2, requests, &count, indices, statuses), 2);
    start(1);
    errors("testsome", MPI_Testsome(2, requests, &count, indices, statuses), 2);
    start(2);
    errors("waitsome fails", MPI_Waitsome(2, requests, &count, indices, statuses), 2);
    start(2);
    errors("testsome fails", MPI_Testsome(2, requests, &count, indices, statuses), 2);
}
