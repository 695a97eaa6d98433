/* Messages that are too long, or never come. */
#include "fault.h"

static int values[100000];

// 2 ranks, code 15: rank 1: MPI_Recv on MPI_COMM_WORLD: a message of 40 bytes from rank 0 with tag 3 does not fit in a buffer of 16 bytes (class MPI_ERR_TRUNCATE); the job ends
static void truncation(void) {
    if (rank == 0) MPI_Send(values, 10, MPI_INT, 1, 3, MPI_COMM_WORLD);
    else MPI_Recv(values, 4, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

// 2 ranks, code 15: rank 1: MPI_Wait on MPI_COMM_WORLD: a message of 400000 bytes from rank 0 with tag 3 does not fit in a buffer of 16 bytes (class MPI_ERR_TRUNCATE); the job ends
static void truncation_of_long(void) {
    MPI_Request request;
    if (rank == 0) {
        MPI_Send(values, 100000, MPI_INT, 1, 3, MPI_COMM_WORLD);
    } else {
        MPI_Irecv(values, 4, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

// 2 ranks, code 15: rank 1: MPI_Recv on turned: a message of 40 bytes from rank 1 with tag 3 does not fit in a buffer of 16 bytes (class MPI_ERR_TRUNCATE); the job ends
static void truncation_on_part(void) {
    // Its ranks are in the other order: the sender is rank 1 of it, and rank 0 of the job.
    MPI_Comm turned;
    MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &turned);
    MPI_Comm_set_name(turned, "turned");
    if (rank == 0) MPI_Send(values, 10, MPI_INT, 0, 3, turned);
    else MPI_Recv(values, 4, MPI_INT, 1, 3, turned, MPI_STATUS_IGNORE);
}

// 2 ranks, stands still: tsumugi: all ranks are quiet: every worker sleeps and nothing is left to wake one
//     tsumugi:   rank 0: ... waits for a message from rank 1 with tag 5 on MPI_COMM_WORLD...
//     tsumugi:   rank 1: ... waits for a message from any rank with any tag on turned...
static void receive_without_send(void) {
    MPI_Comm turned;
    MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &turned);
    MPI_Comm_set_name(turned, "turned");
    if (rank == 0) MPI_Recv(values, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else MPI_Recv(values, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, turned, MPI_STATUS_IGNORE);
}

// 2 ranks, stands still: tsumugi:   rank 0: ... waits for a message from rank 1 with tag 6 on MPI_COMM_WORLD...
//     tsumugi:   rank 1: ... waits until rank 0 takes a message with tag 7 on MPI_COMM_WORLD...
static void send_without_receive(void) {
    MPI_Request requests[2];
    if (rank == 0) {
        MPI_Irecv(values, 1, MPI_INT, 1, 6, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(values + 1, 1, MPI_INT, 1, 8, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    } else {
        MPI_Ssend(values, 1, MPI_INT, 0, 7, MPI_COMM_WORLD);
    }
}

// 2 ranks, stands still: tsumugi:   rank 0: ... waits for a message from rank 1 with tag 9 on MPI_COMM_WORLD...
//     tsumugi:   rank 1: ... waits in group barrier ..., for rank 0...
static void probe_without_send(void) {
    if (rank == 0) MPI_Probe(1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else MPI_Barrier(MPI_COMM_WORLD);
}

FAULTS(FAULT(truncation), FAULT(truncation_of_long), FAULT(truncation_on_part),
       FAULT(receive_without_send), FAULT(send_without_receive), FAULT(probe_without_send))
