/* Ranks: 1. Generalized requests: the program says when they end, and with which status. */
#include "check.h"

static int query(void *state, MPI_Status *status) {
    say("query %d\n", *(int *)state);
    MPI_Status_set_elements(status, MPI_INT, 7);
    MPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = 3;
    status->MPI_TAG = 4;
    return MPI_SUCCESS;
}

static int release(void *state) {
    say("free %d\n", *(int *)state);
    return MPI_SUCCESS;
}

static int cancel(void *state, int complete) {
    say("cancel %d, complete %d\n", *(int *)state, complete);
    return MPI_SUCCESS;
}

static int refuse(void *state, MPI_Status *status) {
    (void)state;
    (void)status;
    return MPI_ERR_BUFFER;
}

static void program(void) {
    int one = 1, two = 2, three = 3, flag;
    MPI_Request request;
    MPI_Status status;
    errors_return();
    MPI_Grequest_start(query, release, cancel, &one, &request);
    MPI_Test(&request, &flag, &status);
    say("done %d\n", flag);
    MPI_Cancel(&request);
    MPI_Grequest_complete(request);
    MPI_Cancel(&request);
    MPI_Request_get_status(request, &flag, &status);
    say("done %d\n", flag);
    MPI_Wait(&request, &status);
    status_of("status", &status, MPI_INT);
    say("null %d\n", request == MPI_REQUEST_NULL);
    MPI_Grequest_start(query, release, cancel, &two, &request);
    MPI_Grequest_complete(request);
    MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    say("done %d\n", flag);
    MPI_Grequest_start(refuse, release, cancel, &three, &request);
    MPI_Grequest_complete(request);
    result("refused", MPI_Wait(&request, &status));
    result("no request", MPI_Grequest_complete(MPI_REQUEST_NULL));
}
