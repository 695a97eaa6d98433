/* Collectives of which the members call different ones. */
#include "fault.h"

static int value, values[64];

// 3 ranks, code 40, checked: rank ...: MPI_Bcast on MPI_COMM_WORLD: the calls differ: rank 0 calls MPI_Bcast(4 MPI_INT, root 0), and rank 2 calls MPI_Bcast(4 MPI_INT, root 1) (class MPI_ERR_NOT_SAME); the job ends
static void roots(void) {
    MPI_Bcast(values, 4, MPI_INT, rank == 2, MPI_COMM_WORLD);
}

// 3 ranks, code 40, checked: rank ...: MPI_... on MPI_COMM_WORLD: the calls differ: rank 0 calls MPI_Barrier, and rank 1 calls MPI_Allreduce(1 MPI_INT, MPI_SUM) (class MPI_ERR_NOT_SAME); the job ends
static void kinds(void) {
    if (rank == 1) MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    else MPI_Barrier(MPI_COMM_WORLD);
}

// 3 ranks, code 40, checked: rank ...: MPI_Allreduce on MPI_COMM_WORLD: the calls differ: rank 0 calls MPI_Allreduce(1 MPI_INT, MPI_SUM), and rank 1 calls MPI_Allreduce(1 MPI_INT, MPI_MAX) (class MPI_ERR_NOT_SAME); the job ends
static void operations(void) {
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, rank == 1 ? MPI_MAX : MPI_SUM, MPI_COMM_WORLD);
}

// 2 ranks, code 40, checked: rank ...: MPI_Gather on MPI_COMM_WORLD: the calls differ: rank 0 calls MPI_Gather(4 MPI_INT, root 1), and rank 1 calls MPI_Gather(4 MPI_FLOAT, root 1) (class MPI_ERR_NOT_SAME); the job ends
static void datatypes(void) {
    if (rank == 0) MPI_Gather(values, 4, MPI_INT, NULL, 0, MPI_INT, 1, MPI_COMM_WORLD);
    else MPI_Gather(values, 4, MPI_FLOAT, values + 8, 4, MPI_FLOAT, 1, MPI_COMM_WORLD);
}

// 2 ranks, code 40, checked: rank ...: MPI_Alltoall on turned: the calls differ: rank 0 calls MPI_Alltoall(2 MPI_INT), and rank 1 calls MPI_Alltoall(3 MPI_INT) (class MPI_ERR_NOT_SAME); the job ends
static void counts(void) {
    MPI_Comm turned;
    MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &turned);
    MPI_Comm_set_name(turned, "turned");
    int count = rank == 0 ? 3 : 2;
    MPI_Alltoall(values, count, MPI_INT, values + 32, count, MPI_INT, turned);
}

// 2 ranks, code 40, checked: rank ...: MPI_Wait on MPI_COMM_WORLD: the calls differ: rank 0 calls MPI_Ibcast(4 MPI_INT, root 0), and rank 1 calls MPI_Ibcast(4 MPI_INT, root 1) (class MPI_ERR_NOT_SAME); the job ends
static void begun(void) {
    MPI_Request request;
    MPI_Ibcast(values, 4, MPI_INT, rank, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

// 2 ranks, code 40, checked: rank ...: MPI_... on MPI_COMM_WORLD: the calls differ: rank 0 calls MPI_Ibarrier, and rank 1 calls MPI_Iallgather(1 MPI_INT) (class MPI_ERR_NOT_SAME); the job ends
static void tested(void) {
    int flag = 0;
    MPI_Request request;
    if (rank == 0) MPI_Ibarrier(MPI_COMM_WORLD, &request);
    else MPI_Iallgather(&value, 1, MPI_INT, values, 1, MPI_INT, MPI_COMM_WORLD, &request);
    while (!flag) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
}

// 2 ranks, code 40, checked: rank ...: MPI_... on MPI_COMM_WORLD: the calls differ: rank 0 calls MPI_Comm_dup, and rank 1 calls MPI_Barrier (class MPI_ERR_NOT_SAME); the job ends
static void communicators(void) {
    MPI_Comm copy;
    if (rank == 0) MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    else MPI_Barrier(MPI_COMM_WORLD);
}

// 3 ranks, stands still: tsumugi:   rank 0: ... waits in group barrier ..., for rank 1, ...
//     tsumugi:   rank 1: ... waits for a message from rank 0 with tag 0 on MPI_COMM_WORLD, ...
//     tsumugi:   group barrier ... waits for rank 1
static void one_too_few(void) {
    if (rank != 1) MPI_Barrier(MPI_COMM_WORLD);
    else MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

// 3 ranks, code 40, checked: rank ...: MPI_Gatherv on MPI_COMM_WORLD: the lengths differ: rank 2 has 8 bytes for rank 0, which wants 12 of it (class MPI_ERR_NOT_SAME); the job ends
static void lengths_of_gather(void) {
    int counts[] = {1, 2, 3}, places[] = {0, 8, 16};
    MPI_Gatherv(values, rank == 2 ? 2 : rank + 1, MPI_INT, values + 32, counts, places, MPI_INT, 0,
                MPI_COMM_WORLD);
}

// 2 ranks, code 40, checked: rank ...: MPI_Scatterv on MPI_COMM_WORLD: the lengths differ: rank 1 has 4 bytes for rank 0, which wants 8 of it (class MPI_ERR_NOT_SAME); the job ends
static void lengths_of_scatter(void) {
    int counts[] = {1, 2}, places[] = {0, 8};
    MPI_Scatterv(values, counts, places, MPI_INT, values + 32, 2, MPI_INT, 1, MPI_COMM_WORLD);
}

// 2 ranks, code 40, checked: rank ...: MPI_Allgatherv on MPI_COMM_WORLD: the lengths differ: rank 0 has 4 bytes for rank 1, which wants 8 of it (class MPI_ERR_NOT_SAME); the job ends
static void lengths_of_all(void) {
    int counts[] = {1 + rank, 2}, places[] = {0, 8};
    MPI_Allgatherv(values, rank + 1, MPI_INT, values + 32, counts, places, MPI_INT, MPI_COMM_WORLD);
}

// 2 ranks, code 40, checked: rank ...: MPI_... on MPI_COMM_WORLD: the lengths differ: rank 0 has 12 bytes for rank 1, which wants 4 of it (class MPI_ERR_NOT_SAME); the job ends
static void lengths_of_exchange(void) {
    int ones[] = {1, 1}, sent[] = {1, rank == 0 ? 3 : 1}, places[] = {0, 8};
    MPI_Request request;
    MPI_Ialltoallv(values, sent, places, MPI_INT, values + 32, ones, places, MPI_INT,
                   MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

// 2 ranks, code 40, checked: rank ...: MPI_Reduce_scatter on MPI_COMM_WORLD: the calls differ: rank 0 calls MPI_Reduce_scatter(4 MPI_INT, MPI_SUM, counts 1 3), and rank 1 calls MPI_Reduce_scatter(4 MPI_INT, MPI_SUM, counts 2 2) (class MPI_ERR_NOT_SAME); the job ends
static void lengths_of_results(void) {
    int counts[] = {1 + rank, 3 - rank};
    MPI_Reduce_scatter(values, values + 32, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

// 2 ranks, code 40, checked: rank ...: MPI_Bcast_init on MPI_COMM_WORLD: the calls differ: rank 0 calls MPI_Bcast_init(4 MPI_INT, root 0), and rank 1 calls MPI_Bcast_init(4 MPI_INT, root 1) (class MPI_ERR_NOT_SAME); the job ends
static void prepared(void) {
    MPI_Request request;
    MPI_Bcast_init(values, 4, MPI_INT, rank, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
}

// 2 ranks, code 40, checked: rank ...: MPI_...: the calls differ: rank 0 calls MPI_Bcast_init(4 MPI_INT, root 0), and rank 1 calls MPI_Barrier_init (class MPI_ERR_NOT_SAME); the job ends
static void started_in_another_order(void) {
    MPI_Request requests[2];
    MPI_Bcast_init(values, 4, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
    MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
    MPI_Start(&requests[rank]);
    MPI_Wait(&requests[rank], MPI_STATUS_IGNORE);
}

// 2 ranks, code 40, checked: rank ...: MPI_Cart_create on MPI_COMM_WORLD: the calls differ: rank 0 calls MPI_Cart_create(dims 1 2, periods 0 1), and rank 1 calls MPI_Cart_create(dims 2 1, periods 0 1) (class MPI_ERR_NOT_SAME); the job ends
static void grids(void) {
    MPI_Comm grid;
    int dims[] = {1 + rank, 2 - rank}, periods[] = {0, 1};
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
}

// 2 ranks, code 40, checked: rank ...: MPI_Graph_create on MPI_COMM_WORLD: the calls differ: rank 0 calls MPI_Graph_create(index 1 2, edges 1 0), and rank 1 calls MPI_Graph_create(index 1 2, edges 1 1) (class MPI_ERR_NOT_SAME); the job ends
static void graphs(void) {
    MPI_Comm graph;
    int index[] = {1, 2}, edges[] = {1, rank};
    MPI_Graph_create(MPI_COMM_WORLD, 2, index, edges, 0, &graph);
}

// 2 ranks, code 40, checked: rank ...: MPI_Dist_graph_create_adjacent on MPI_COMM_WORLD: the edges differ: rank 0 has 2 to rank 1, which has 1 from it (class MPI_ERR_NOT_SAME); the job ends
static void edges(void) {
    MPI_Comm graph;
    int other[] = {1 - rank, 1 - rank};
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, other, MPI_UNWEIGHTED, rank == 0 ? 2 : 1,
                                   other, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
}

// 2 ranks, code 1, checked: rank ...: MPI_Allreduce on MPI_COMM_WORLD: the buffers overlap: 16 bytes from 0x... on are sent, and 16 from 0x... on received (class MPI_ERR_BUFFER); the job ends
static void one_buffer(void) {
    MPI_Allreduce(values, values, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

// 2 ranks, code 1, checked: rank ...: MPI_Allgather on MPI_COMM_WORLD: the buffers overlap: 4 bytes from 0x... on are sent, and 8 from 0x... on received (class MPI_ERR_BUFFER); the job ends
static void own_block(void) {
    MPI_Allgather(values + rank, 1, MPI_INT, values, 1, MPI_INT, MPI_COMM_WORLD);
}

// 2 ranks, code 1, checked: rank ...: MPI_Alltoallv on MPI_COMM_WORLD: the buffers overlap: 8 bytes from 0x... on are sent, and 8 from 0x... on received (class MPI_ERR_BUFFER); the job ends
static void blocks_that_overlap(void) {
    int ones[] = {1, 1}, sent[] = {0, 8}, received[] = {4, 8};
    MPI_Alltoallv(values, ones, sent, MPI_INT, values, ones, received, MPI_INT, MPI_COMM_WORLD);
}

// 2 ranks, code 1, checked: rank ...: MPI_Sendrecv on MPI_COMM_WORLD: the buffers overlap: 8 bytes from 0x... on are sent, and 8 from 0x... on received (class MPI_ERR_BUFFER); the job ends
static void sent_and_received(void) {
    MPI_Sendrecv(values, 2, MPI_INT, 1 - rank, 0, values + 1, 2, MPI_INT, 1 - rank, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

// 2 ranks, code 15: rank 0: MPI_Gatherv on MPI_COMM_WORLD: 8 bytes are sent to this rank itself, and 4 received (class MPI_ERR_TRUNCATE); the job ends
static void own_block_of_gather(void) {
    int one[] = {1, 1}, places[] = {0, 1};
    MPI_Gatherv(values, 2, MPI_INT, values + 8, one, places, MPI_INT, 0, MPI_COMM_WORLD);
}

// 2 ranks, code 15: rank 0: MPI_Scatterv on MPI_COMM_WORLD: 4 bytes are sent to this rank itself, and 8 received (class MPI_ERR_TRUNCATE); the job ends
static void own_block_of_scatter(void) {
    int one[] = {1, 1}, places[] = {0, 1};
    MPI_Scatterv(values, one, places, MPI_INT, values + 8, 2, MPI_INT, 0, MPI_COMM_WORLD);
}

// 1 ranks, code 15: rank 0: MPI_Allgatherv on MPI_COMM_WORLD: 4 bytes are sent to this rank itself, and 12 received (class MPI_ERR_TRUNCATE); the job ends
static void own_block_of_all(void) {
    int three = 3, place = 0;
    MPI_Allgatherv(values, 1, MPI_INT, values + 8, &three, &place, MPI_INT, MPI_COMM_WORLD);
}

/* All that is right stays right when it is checked. */

// 2 ranks, code 0, checked: rank 0: nothing is wrong
static void nothing(void) {
    int one[] = {1, 1}, places[] = {0, 1}, dims[] = {2}, periods[] = {0}, other = 1 - rank;
    int none[] = {0, 0};
    MPI_Comm made;
    MPI_Request requests[3];
    MPI_Datatype column;
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_INT, values, one, places, MPI_INT, MPI_COMM_WORLD);
    MPI_Gatherv(&value, 1, MPI_INT, values, one, places, MPI_INT, 1, MPI_COMM_WORLD);
    MPI_Scatterv(values, one, places, MPI_INT, &value, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Alltoallv(values, one, places, MPI_INT, values + 2, one, places, MPI_INT, MPI_COMM_WORLD);
    MPI_Ialltoallv(values, one, places, MPI_INT, values + 2, one, places, MPI_INT, MPI_COMM_WORLD,
                   &requests[0]);
    MPI_Igatherv(&value, 1, MPI_INT, values + 4, one, places, MPI_INT, 1, MPI_COMM_WORLD,
                 &requests[1]);
    MPI_Reduce_scatter_init(values + 8, values + 16, one, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
                            MPI_INFO_NULL, &requests[2]);
    MPI_Start(&requests[2]);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    MPI_Request_free(&requests[2]);
    // Columns of one matrix have no byte in common.
    MPI_Type_vector(4, 1, 4, MPI_INT, &column);
    MPI_Type_commit(&column);
    MPI_Allreduce(values, values + 1, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Sendrecv(values, 1, column, other, 0, values + 1, 1, column, other, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Type_free(&column);
    MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &made);
    MPI_Comm_free(&made);
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &other, MPI_UNWEIGHTED, 1, &other,
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made);
    MPI_Neighbor_alltoall(values, 1, MPI_INT, values + 8, 1, MPI_INT, made);
    MPI_Comm_free(&made);
    /* Buffers that mean nothing may be any. */
    MPI_Exscan(values, rank == 0 ? NULL : values + 4, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Exscan(values, rank == 0 ? values : values + 4, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Alltoallv(NULL, none, none, MPI_INT, NULL, none, none, MPI_INT, MPI_COMM_WORLD);
    MPI_Sendrecv(values, 2, MPI_INT, MPI_PROC_NULL, 0, values + 1, 2, MPI_INT, MPI_PROC_NULL, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(values + rank, 4, MPI_INT, rank == 0 ? 1 : MPI_PROC_NULL, 0, values + 2, 4,
                 MPI_INT, rank == 0 ? MPI_PROC_NULL : 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 0) fprintf(stderr, "rank 0: nothing is wrong\n");
}

/* A copy of the world with a name. */
static MPI_Comm named(void) {
    MPI_Comm halves;
    MPI_Comm_dup(MPI_COMM_WORLD, &halves);
    MPI_Comm_set_name(halves, "halves");
    return halves;
}

static void receive_nothing(MPI_Comm comm) {
    MPI_Recv(&value, 1, MPI_INT, 0, 5, comm, MPI_STATUS_IGNORE);
}

// 3 ranks, stands still: tsumugi:   rank 0: ULT 0 "main" waits in group barrier 2 of group ... (halves), begun by MPI_Ibarrier, for rank 1, for ...
//     tsumugi:   rank 2: ULT 0 "main" waits in group barrier 2 of group ... (halves), begun by MPI_Ibarrier, for rank ...
//     tsumugi:   group barrier 2 of group ... (halves) waits for rank 1
static void one_too_few_begun(void) {
    MPI_Comm halves = named();
    MPI_Request request;
    if (rank == 1) receive_nothing(halves);
    MPI_Ibarrier(halves, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

// 2 ranks, stands still: tsumugi:   rank 0: ULT 0 "main" waits in allreduce ... (MPI_COMM_WORLD), begun by MPI_Iallreduce, for rank 1, for ...
static void one_too_few_of_all(void) {
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    if (rank == 1) receive_nothing(MPI_COMM_WORLD);
    MPI_Iallreduce(&value, values, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

// 2 ranks, stands still: tsumugi:   rank 0: ULT 0 "main" waits in broadcast ... of group ... (halves), begun by MPI_Ibcast, for rank 1, for ...
static void one_too_few_of_any(void) {
    MPI_Comm halves = named();
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    int index;
    if (rank == 1) receive_nothing(halves);
    MPI_Ibcast(values, 4, MPI_INT, 1, halves, &requests[1]);
    MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
}

// 2 ranks, stands still: tsumugi:   rank 0: ULT 0 "main" waits in allreduce ... of group ... (halves), begun by MPI_Allreduce_init, for rank 1, for ...
static void one_too_few_persistent(void) {
    MPI_Comm halves = named();
    MPI_Request request;
    MPI_Allreduce_init(&value, values, 1, MPI_INT, MPI_SUM, halves, MPI_INFO_NULL, &request);
    if (rank == 1) receive_nothing(halves);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

FAULTS(FAULT(one_too_few_begun), FAULT(one_too_few_of_all), FAULT(one_too_few_of_any),
       FAULT(one_too_few_persistent), FAULT(lengths_of_gather), FAULT(lengths_of_scatter),
       FAULT(lengths_of_all), FAULT(lengths_of_exchange), FAULT(lengths_of_results),
       FAULT(prepared), FAULT(started_in_another_order), FAULT(grids), FAULT(graphs),
       FAULT(edges), FAULT(one_buffer), FAULT(own_block), FAULT(blocks_that_overlap),
       FAULT(sent_and_received), FAULT(own_block_of_gather), FAULT(own_block_of_scatter),
       FAULT(own_block_of_all), FAULT(nothing), FAULT(roots), FAULT(kinds), FAULT(operations), FAULT(datatypes), FAULT(counts),
       FAULT(begun), FAULT(tested), FAULT(communicators), FAULT(one_too_few))
