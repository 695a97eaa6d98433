/* What a program leaves at the end. */
#include "fault.h"

static int values[20];

// 2 ranks, code 0, checked: rank 0: MPI_Finalize: requests that were not completed (2): a receive on MPI_COMM_WORLD, a receive on MPI_COMM_SELF
static void requests(void) {
    MPI_Request request;
    if (rank == 0) {
        MPI_Irecv(values, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &request);
        MPI_Irecv(values, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &request);
    }
}

// 2 ranks, code 0, checked: rank 1: MPI_Finalize: requests that were not completed (2): a persistent request, a collective on MPI_COMM_WORLD
static void other_requests(void) {
    MPI_Request request;
    if (rank == 1) MPI_Send_init(values, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &request);
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    if (rank == 0) MPI_Wait(&request, MPI_STATUS_IGNORE);
}

// 1 ranks, code 0, checked: rank 0: MPI_Finalize: communicators that were not freed (2): half, communicator 0x...
//     rank 0: MPI_Finalize: datatypes that were not freed (1): pair
static void objects(void) {
    MPI_Comm copy;
    MPI_Datatype pair;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_set_name(copy, "half");
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_set_name(pair, "pair");
}

FAULTS(FAULT(requests), FAULT(other_requests), FAULT(objects))
