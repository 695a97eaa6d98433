/* Ranks: 1 3. Buffers that are NULL, or MPI_IN_PLACE for output, where they mean something and
 * where they do not. */
#include "check.h"

static int values[8], into[8];

static void refused(void) {
    int counts[3] = {1, 1, 1}, places[3] = {0, 1, 2};
    MPI_Request request;
    MPI_Comm comm = MPI_COMM_WORLD;
    result("allreduce", MPI_Allreduce(values, NULL, 1, MPI_INT, MPI_SUM, comm));
    result("allreduce in place", MPI_Allreduce(MPI_IN_PLACE, NULL, 1, MPI_INT, MPI_SUM, comm));
    result("allreduce into", MPI_Allreduce(values, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, comm));
    result("iallreduce", MPI_Iallreduce(values, NULL, 1, MPI_INT, MPI_SUM, comm, &request));
    result("init", MPI_Allreduce_init(values, NULL, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &request));
    result("scan", MPI_Scan(values, NULL, 1, MPI_INT, MPI_SUM, comm));
    result("block", MPI_Reduce_scatter_block(values, NULL, 1, MPI_INT, MPI_SUM, comm));
    result("reduce_scatter", MPI_Reduce_scatter(values, NULL, counts, MPI_INT, MPI_SUM, comm));
    result("allgatherv", MPI_Allgatherv(values, 1, MPI_INT, NULL, counts, places, MPI_INT, comm));
    result("alltoallv into", MPI_Alltoallv(values, counts, places, MPI_INT, NULL, counts, places, MPI_INT, comm));
    result("alltoallv from", MPI_Alltoallv(NULL, counts, places, MPI_INT, into, counts, places, MPI_INT, comm));
    result("self", MPI_Reduce(values, NULL, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_SELF));
    result("self scan", MPI_Scan(values, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF));
}

static void taken(void) {
    int none[3] = {0, 0, 0}, counts[3] = {1, 1, 1}, places[3] = {0, 1, 2};
    MPI_Comm comm = MPI_COMM_WORLD;
    result("reduce", MPI_Reduce(values, rank == 0 ? into : NULL, 2, MPI_INT, MPI_SUM, 0, comm));
    result("gatherv", MPI_Gatherv(values, 1, MPI_INT, rank == 0 ? into + 4 : NULL, counts, places, MPI_INT, 0, comm));
    result("nothing", MPI_Allreduce(NULL, NULL, 0, MPI_INT, MPI_SUM, comm));
    result("no blocks", MPI_Alltoallv(values, none, places, MPI_INT, NULL, none, places, MPI_INT, comm));
    result("no results", MPI_Reduce_scatter(values, rank == 0 ? into + 7 : NULL,
                                            (int[]){1, 0, 0}, MPI_INT, MPI_SUM, comm));
    ints("results", into, 8);
}

/* Elements of a datatype with addresses lie at MPI_BOTTOM, which is NULL. */
static void bottom(void) {
    MPI_Datatype absolute;
    MPI_Aint place;
    int one = 1, zero = 0;
    MPI_Get_address(into, &place);
    MPI_Type_create_hindexed(1, &one, &place, MPI_INT, &absolute);
    MPI_Type_commit(&absolute);
    result("alltoallv", MPI_Alltoallv(values, &one, &zero, MPI_INT, MPI_BOTTOM, &one, &zero, absolute, MPI_COMM_SELF));
    result("allgatherv", MPI_Allgatherv(values + 1, 1, MPI_INT, MPI_BOTTOM, &one, &zero, absolute, MPI_COMM_SELF));
    ints("first", into, 1);
    MPI_Type_free(&absolute);
}

static void program(void) {
    errors_return();
    fill(values, 8, 10 * rank + 1);
    refused();
    taken();
    bottom();
}
