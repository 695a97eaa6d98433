/* Arguments that are wrong. */
#include "fault.h"

static int value, values[10];

// 2 ranks, code 6: rank 0: MPI_Send on MPI_COMM_WORLD: rank 7 is not one of the 2 of MPI_COMM_WORLD (class MPI_ERR_RANK); the job ends
static void wrong_rank(void) {
    if (rank == 0) MPI_Send(&value, 1, MPI_INT, 7, 0, MPI_COMM_WORLD);
}

// 2 ranks, code 6: rank 1: MPI_Irecv on half: rank 1 is not one of the 1 of half (class MPI_ERR_RANK); the job ends
static void wrong_rank_of_part(void) {
    MPI_Comm half;
    MPI_Request request;
    MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &half);
    MPI_Comm_set_name(half, "half");
    if (rank == 1) MPI_Irecv(&value, 1, MPI_INT, 1, 0, half, &request);
}

// 2 ranks, code 4: rank 0: MPI_Send on MPI_COMM_WORLD: tag -5 of a send is negative (class MPI_ERR_TAG); the job ends
static void wrong_tag(void) {
    if (rank == 0) MPI_Send(&value, 1, MPI_INT, 1, -5, MPI_COMM_WORLD);
}

// 2 ranks, code 4: rank 0: MPI_Send on MPI_COMM_WORLD: the tag of a send is MPI_ANY_TAG (class MPI_ERR_TAG); the job ends
static void any_tag_of_send(void) {
    if (rank == 0) MPI_Send(&value, 1, MPI_INT, 1, MPI_ANY_TAG, MPI_COMM_WORLD);
}

// 2 ranks, code 6: rank 0: MPI_Send on MPI_COMM_WORLD: the rank of a send is MPI_ANY_SOURCE (class MPI_ERR_RANK); the job ends
static void any_source_of_send(void) {
    if (rank == 0) MPI_Send(&value, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD);
}

// 2 ranks, code 2: rank 1: MPI_Recv on MPI_COMM_WORLD: -3 elements: the number is negative (class MPI_ERR_COUNT); the job ends
static void negative_count(void) {
    if (rank == 1) MPI_Recv(values, -3, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

// 2 ranks, code 2: rank 0: MPI_Allreduce on MPI_COMM_WORLD: -1 elements: the number is negative (class MPI_ERR_COUNT); the job ends
static void negative_count_of_collective(void) {
    if (rank == 0) MPI_Allreduce(&value, values, -1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

// 2 ranks, code 1: rank 0: MPI_Send on MPI_COMM_WORLD: the buffer of 4 elements is NULL (class MPI_ERR_BUFFER); the job ends
static void null_buffer(void) {
    if (rank == 0) MPI_Send(NULL, 4, MPI_INT, 1, 0, MPI_COMM_WORLD);
}

// 2 ranks, code 5: rank 0: MPI_Send: the communicator is MPI_COMM_NULL (class MPI_ERR_COMM); the job ends
static void null_communicator(void) {
    if (rank == 0) MPI_Send(&value, 1, MPI_INT, 1, 0, MPI_COMM_NULL);
}

// 2 ranks, code 5: rank 1: MPI_Barrier: no communicator has the handle 0x...: it was freed, or never made (class MPI_ERR_COMM); the job ends
static void freed_communicator(void) {
    MPI_Comm copy, kept;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    kept = copy;
    MPI_Comm_free(&copy);
    if (rank == 1) MPI_Barrier(kept);
}

// 2 ranks, code 3: rank 0: MPI_Send on MPI_COMM_WORLD: no datatype has the handle 0x...: it was freed, or never made (class MPI_ERR_TYPE); the job ends
static void freed_datatype(void) {
    MPI_Datatype pair, kept;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    kept = pair;
    MPI_Type_free(&pair);
    if (rank == 0) MPI_Send(values, 1, kept, 1, 0, MPI_COMM_WORLD);
}

// 2 ranks, code 3: rank 0: MPI_Send on MPI_COMM_WORLD: the datatype pair was not committed (class MPI_ERR_TYPE); the job ends
static void uncommitted_datatype(void) {
    MPI_Datatype pair;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_set_name(pair, "pair");
    if (rank == 0) MPI_Send(values, 1, pair, 1, 0, MPI_COMM_WORLD);
}

// 2 ranks, code 3: rank 0: MPI_Send on MPI_COMM_WORLD: the datatype is MPI_DATATYPE_NULL (class MPI_ERR_TYPE); the job ends
static void null_datatype(void) {
    if (rank == 0) MPI_Send(values, 1, MPI_DATATYPE_NULL, 1, 0, MPI_COMM_WORLD);
}

// 2 ranks, code 8: rank 1: MPI_Bcast on MPI_COMM_WORLD: root 2 is not one of the 2 ranks of MPI_COMM_WORLD (class MPI_ERR_ROOT); the job ends
static void wrong_root(void) {
    if (rank == 1) MPI_Bcast(&value, 1, MPI_INT, 2, MPI_COMM_WORLD);
}

// 2 ranks, code 10: rank 0: MPI_Allreduce on MPI_COMM_WORLD: ...MPI_BAND...MPI_DOUBLE... (class MPI_ERR_OP); the job ends
static void wrong_operation(void) {
    double from = 0, into;
    if (rank == 0) MPI_Allreduce(&from, &into, 1, MPI_DOUBLE, MPI_BAND, MPI_COMM_WORLD);
}

// 2 ranks, code 1: rank 0: MPI_Reduce on MPI_COMM_WORLD: ...MPI_IN_PLACE... (class MPI_ERR_BUFFER); the job ends
static void wrong_in_place(void) {
    if (rank == 0) MPI_Reduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, 1, MPI_COMM_WORLD);
}

// 1 ranks, code 13: rank 0: MPI_Waitall: the list of 3 requests is NULL (class MPI_ERR_ARG); the job ends
static void null_requests(void) {
    MPI_Waitall(3, NULL, MPI_STATUSES_IGNORE);
}

// 1 ranks, code 2: rank 0: MPI_Waitany: -1 requests: the number is negative (class MPI_ERR_COUNT); the job ends
static void negative_requests(void) {
    int at;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Waitany(-1, &request, &at, MPI_STATUS_IGNORE);
}

// 1 ranks, code 7: rank 0: MPI_Wait: no request has the handle 0x...: it has ended or was freed, or it was never made (class MPI_ERR_REQUEST); the job ends
static void ended_request(void) {
    MPI_Request request, kept;
    MPI_Irecv(&value, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &request);
    kept = request;
    MPI_Send(&value, 1, MPI_INT, 0, 0, MPI_COMM_SELF);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Wait(&kept, MPI_STATUS_IGNORE);
}

// 1 ranks, code 7: rank 0: MPI_Start: the request is MPI_REQUEST_NULL (class MPI_ERR_REQUEST); the job ends
static void null_start(void) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Start(&request);
}

// 1 ranks, code 55: rank 0: MPI_File_open: this library does not have this function yet (class MPI_ERR_UNSUPPORTED_OPERATION); the job ends
static void function_not_built(void) {
    MPI_File file;
    MPI_File_open(MPI_COMM_WORLD, "file", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
}

// 2 ranks, code 1: rank 0: MPI_Allreduce on MPI_COMM_WORLD: the buffer of 4 elements is NULL (class MPI_ERR_BUFFER); the job ends
static void null_output(void) {
    if (rank == 0) MPI_Allreduce(values, NULL, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

// 1 ranks, code 1: rank 0: MPI_Reduce_local: the buffer of 2 elements is NULL (class MPI_ERR_BUFFER); the job ends
static void null_local_output(void) {
    MPI_Reduce_local(values, NULL, 2, MPI_INT, MPI_SUM);
}

// 1 ranks, code 1: rank 0: MPI_Reduce_local: the buffer is MPI_IN_PLACE (class MPI_ERR_BUFFER); the job ends
static void in_place_local_output(void) {
    MPI_Reduce_local(values, MPI_IN_PLACE, 2, MPI_INT, MPI_SUM);
}

// 2 ranks, code 1: rank 1: MPI_Exscan_init on MPI_COMM_WORLD: the buffer of 1 elements is NULL (class MPI_ERR_BUFFER); the job ends
static void null_prepared_output(void) {
    MPI_Request request;
    MPI_Exscan_init(&value, NULL, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
}

// 1 ranks, code 1: rank 0: MPI_Alltoallw on MPI_COMM_WORLD: the buffer of 1 elements is NULL (class MPI_ERR_BUFFER); the job ends
static void null_blocks(void) {
    int one = 1, zero = 0;
    MPI_Datatype type = MPI_INT;
    MPI_Alltoallw(NULL, &one, &zero, &type, values, &one, &zero, &type, MPI_COMM_WORLD);
}

// 1 ranks, code 10: rank 0: MPI_Allreduce on MPI_COMM_WORLD: the operation is MPI_OP_NULL (class MPI_ERR_OP); the job ends
static void null_operation(void) {
    MPI_Allreduce(&value, values, 1, MPI_INT, MPI_OP_NULL, MPI_COMM_WORLD);
}

// 1 ranks, code 7: rank 0: MPI_Mrecv: the message is MPI_MESSAGE_NULL (class MPI_ERR_REQUEST); the job ends
static void null_message(void) {
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Mrecv(values, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
}

// 1 ranks, code 2: rank 0: MPI_Isend_c on MPI_COMM_WORLD: -1 elements: the number is negative (class MPI_ERR_COUNT); the job ends
static void negative_large_count(void) {
    MPI_Request request;
    MPI_Isend_c(values, -1, MPI_INT, 0, 0, MPI_COMM_WORLD, &request);
}

// 1 ranks, code 3: rank 0: MPI_Type_contiguous_c: the datatype is MPI_DATATYPE_NULL (class MPI_ERR_TYPE); the job ends
static void null_large_datatype(void) {
    MPI_Datatype type;
    MPI_Type_contiguous_c(2, MPI_DATATYPE_NULL, &type);
}

FAULTS(FAULT(wrong_rank), FAULT(wrong_rank_of_part), FAULT(wrong_tag), FAULT(any_tag_of_send),
       FAULT(any_source_of_send), FAULT(negative_count), FAULT(negative_count_of_collective),
       FAULT(null_buffer), FAULT(null_communicator), FAULT(freed_communicator),
       FAULT(freed_datatype), FAULT(uncommitted_datatype), FAULT(null_datatype),
       FAULT(wrong_root), FAULT(wrong_operation), FAULT(wrong_in_place), FAULT(null_requests),
       FAULT(negative_requests), FAULT(ended_request), FAULT(null_start),
       FAULT(function_not_built), FAULT(null_output), FAULT(null_local_output),
       FAULT(in_place_local_output), FAULT(null_prepared_output), FAULT(null_blocks),
       FAULT(null_operation), FAULT(null_message), FAULT(negative_large_count),
       FAULT(null_large_datatype))
