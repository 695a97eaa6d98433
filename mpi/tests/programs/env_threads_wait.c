/* Ranks: 2. A thread waits for a request that another one moves on by its handle: completes an
 * operation, makes partitions ready, cancels a receive. */
#define WITH_THREADS
#include "check.h"
#include <pthread.h>
#include <unistd.h>

static MPI_Request request;

static int query(void *state, MPI_Status *status) {
    (void)state;
    MPI_Status_set_elements(status, MPI_BYTE, 0);
    MPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = MPI_UNDEFINED;
    return MPI_SUCCESS;
}

static int ended(void *state) {
    ++*(int *)state;
    return MPI_SUCCESS;
}

static int cancelled(void *state, int is_complete) {
    (void)state, (void)is_complete;
    return MPI_SUCCESS;
}

static void *complete(void *nothing) {
    usleep(20000);
    MPI_Grequest_complete(request);
    return nothing;
}

static void *make_ready(void *nothing) {
    usleep(20000);
    for (int i = 0; i < 4; i++) MPI_Pready(i, request);
    return nothing;
}

static void *cancel(void *nothing) {
    usleep(20000);
    MPI_Cancel(&request);
    return nothing;
}

static pthread_t beside(void *function(void *)) {
    pthread_t thread;
    pthread_create(&thread, NULL, function, NULL);
    return thread;
}

static void program(void) {
    MPI_Status status;
    int freed = 0, values[4] = {rank, rank, rank, rank};
    MPI_Grequest_start(query, ended, cancelled, &freed, &request);
    pthread_t thread = beside(complete);
    MPI_Wait(&request, &status);
    pthread_join(thread, NULL);
    say("complete, freed %d, null %d\n", freed, request == MPI_REQUEST_NULL);
    if (rank == 0) {
        MPI_Psend_init(values, 4, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    } else {
        MPI_Precv_init(values, 4, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    }
    for (int round = 0; round < 2; round++) {
        MPI_Start(&request);
        if (rank == 0) thread = beside(make_ready);
        if (round == 0) MPI_Wait(&request, MPI_STATUS_IGNORE);
        else MPI_Waitall(1, &request, MPI_STATUSES_IGNORE);
        if (rank == 0) pthread_join(thread, NULL);
        ints("partitions", values, 4);
    }
    MPI_Request_free(&request);
    for (int round = 0; round < 2; round++) {
        MPI_Irecv(values, 1, MPI_INT, rank, 9, MPI_COMM_WORLD, &request);
        thread = beside(cancel);
        if (round == 0) MPI_Wait(&request, &status);
        else MPI_Waitall(1, &request, &status);
        pthread_join(thread, NULL);
        int is_cancelled;
        MPI_Test_cancelled(&status, &is_cancelled);
        say("cancelled %d\n", is_cancelled);
    }
}
