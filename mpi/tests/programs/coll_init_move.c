/* Ranks: 1 2 3. Persistent broadcast, gathers, scatters and exchanges, started three times. */
#include "check.h"

static void program(void) {
    int values[2], part[2], gathered[6], all[6], some[2], out[6], exchanged[6], place[3], ones[3] = {1, 1, 1};
    int all_v[3], v_root[3], exchanged_v[3], scattered_v = -1, exchanged_w[3], places_w[3] = {8, 4, 0};
    MPI_Datatype types[3] = {MPI_INT, MPI_INT, MPI_INT};
    MPI_Request requests[11];
    int root = size - 1;
    for (int i = 0; i < 3; i++) place[i] = i < size ? size - 1 - i : i;
    fill(gathered, 6, -6);
    fill(v_root, 3, -6);
    fill(exchanged_w, 3, -9);
    MPI_Bcast_init(values, 2, MPI_INT, root, MPI_COMM_WORLD, MPI_INFO_NULL, requests);
    MPI_Gather_init(part, 2, MPI_INT, gathered, 2, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, requests + 1);
    MPI_Gatherv_init(part, 1, MPI_INT, v_root, ones, place, MPI_INT, root, MPI_COMM_WORLD, MPI_INFO_NULL, requests + 2);
    MPI_Scatter_init(out, 2, MPI_INT, some, 2, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, requests + 3);
    MPI_Scatterv_init(out, ones, place, MPI_INT, &scattered_v, 1, MPI_INT, root, MPI_COMM_WORLD, MPI_INFO_NULL, requests + 4);
    MPI_Allgather_init(part, 2, MPI_INT, all, 2, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, requests + 5);
    MPI_Allgatherv_init(part, 1, MPI_INT, all_v, ones, place, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, requests + 6);
    MPI_Alltoall_init(out, 2, MPI_INT, exchanged, 2, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, requests + 7);
    MPI_Alltoallv_init(out, ones, place, MPI_INT, exchanged_v, ones, place, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, requests + 8);
    MPI_Alltoallw_init(out, ones, places_w, types, exchanged_w, ones, places_w, types, MPI_COMM_WORLD, MPI_INFO_NULL, requests + 9);
    MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, requests + 10);
    for (int round = 0; round < 3; round++) {
        fill(values, 2, rank == root ? 70 + round : 0);
        fill(part, 2, 10 * rank + round);
        fill(out, 6, 100 * rank + 1000 * round);
        MPI_Startall(11, requests);
        MPI_Waitall(11, requests, MPI_STATUSES_IGNORE);
        ints("bcast", values, 2);
        ints("gather", gathered, 2 * size);
        ints("gatherv", v_root, size);
        ints("scatter", some, 2);
        ints("scatterv", &scattered_v, 1);
        ints("allgather", all, 2 * size);
        ints("allgatherv", all_v, size);
        ints("alltoall", exchanged, 2 * size);
        ints("alltoallv", exchanged_v, size);
        ints("alltoallw", exchanged_w, 3);
    }
    for (int i = 0; i < 11; i++) MPI_Request_free(requests + i);
}
