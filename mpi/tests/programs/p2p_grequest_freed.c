/* Ranks: 1. A generalized request that is freed lasts until the program has completed it. */
#include "check.h"

static int query(void *state, MPI_Status *status) {
    say("query %d\n", *(int *)state);
    MPI_Status_set_elements(status, MPI_INT, 0);
    MPI_Status_set_cancelled(status, 0);
    return MPI_SUCCESS;
}

static int release(void *state) {
    say("free %d\n", *(int *)state);
    *(int *)state = -1;
    return MPI_SUCCESS;
}

static int cancel(void *state, int complete) {
    say("cancel %d, complete %d\n", *(int *)state, complete);
    return MPI_SUCCESS;
}

static void program(void) {
    int states[] = {0, 1, 2, 3};
    MPI_Request request, copy;
    errors_return();
    for (int i = 0; i < 3; i++) {
        MPI_Grequest_start(query, release, cancel, &states[i], &request);
        copy = request;
        // The first is complete before it is freed, the others after.
        if (i == 0) result("complete", MPI_Grequest_complete(request));
        result("freed", MPI_Request_free(&request));
        say("null %d, state %d\n", request == MPI_REQUEST_NULL, states[i]);
        if (i != 0) result("complete", MPI_Grequest_complete(copy));
        say("state %d\n", states[i]);
    }
    // Another one is not touched by them.
    MPI_Grequest_start(query, release, cancel, &states[3], &request);
    MPI_Grequest_complete(request);
    result("wait", MPI_Wait(&request, MPI_STATUS_IGNORE));
}
