/* Ranks: 1 2 3. Nonblocking broadcast, gathers, scatters and exchanges, all at once. */
#include "check.h"

static void program(void) {
    int values[3], part[2], gathered[6], all[6], some[3], out[6], exchanged[6], place[3] = {2, 0, 1}, ones[3] = {1, 1, 1};
    int all_v[3], v_root[3], exchanged_v[3], scattered_v = -1, exchanged_w[3], places_w[3] = {8, 4, 0};
    MPI_Datatype types[3] = {MPI_INT, MPI_INT, MPI_INT};
    MPI_Request requests[11];
    int root = size - 1;
    fill(values, 3, rank == root ? 70 : 0);
    fill(part, 2, 10 * rank);
    fill(out, 6, 100 * rank);
    fill(gathered, 6, -6);
    fill(v_root, 3, -6);
    fill(exchanged_w, 3, -9);
    for (int i = size; i < 3; i++) place[i] = i;
    for (int i = 0; i < size; i++) place[i] = size - 1 - i;
    fill(all_v, 3, -3);
    fill(exchanged_v, 3, -3);
    MPI_Ibcast(values, 3, MPI_INT, root, MPI_COMM_WORLD, requests);
    MPI_Igather(part, 2, MPI_INT, gathered, 2, MPI_INT, 0, MPI_COMM_WORLD, requests + 1);
    MPI_Igatherv(part, 1, MPI_INT, v_root, ones, place, MPI_INT, root, MPI_COMM_WORLD, requests + 2);
    MPI_Iscatter(out, 2, MPI_INT, some, 2, MPI_INT, 0, MPI_COMM_WORLD, requests + 3);
    MPI_Iscatterv(out, ones, place, MPI_INT, &scattered_v, 1, MPI_INT, root, MPI_COMM_WORLD, requests + 4);
    MPI_Iallgather(part, 2, MPI_INT, all, 2, MPI_INT, MPI_COMM_WORLD, requests + 5);
    MPI_Iallgatherv(part, 1, MPI_INT, all_v, ones, place, MPI_INT, MPI_COMM_WORLD, requests + 6);
    MPI_Ialltoall(out, 2, MPI_INT, exchanged, 2, MPI_INT, MPI_COMM_WORLD, requests + 7);
    MPI_Ialltoallv(out, ones, place, MPI_INT, exchanged_v, ones, place, MPI_INT, MPI_COMM_WORLD, requests + 8);
    MPI_Ialltoallw(out, ones, places_w, types, exchanged_w, ones, places_w, types, MPI_COMM_WORLD, requests + 9);
    MPI_Ibarrier(MPI_COMM_WORLD, requests + 10);
    MPI_Waitall(11, requests, MPI_STATUSES_IGNORE);
    ints("ibcast", values, 3);
    ints("igather", gathered, 2 * size);
    ints("igatherv", v_root, size);
    ints("iscatter", some, 2);
    ints("iscatterv", &scattered_v, 1);
    ints("iallgather", all, 2 * size);
    ints("iallgatherv", all_v, size);
    ints("ialltoall", exchanged, 2 * size);
    ints("ialltoallv", exchanged_v, size);
    ints("ialltoallw", exchanged_w, 3);
}
