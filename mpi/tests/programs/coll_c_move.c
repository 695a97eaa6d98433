/* Ranks: 1 2 3. Collectives that move data, with counts. */
#include "check.h"

static void program(void) {
    int values[2], part[2], gathered[6], all[6], some[2], out[6], exchanged[6], scattered_v = -1;
    int all_v[3], v_root[3], exchanged_v[3], exchanged_w[3];
    MPI_Count ones[3] = {1, 1, 1};
    MPI_Aint place[3], places_w[3] = {8, 4, 0};
    MPI_Datatype types[3] = {MPI_INT, MPI_INT, MPI_INT};
    MPI_Request request;
    int root = size - 1;
    for (int i = 0; i < 3; i++) place[i] = i < size ? size - 1 - i : i;
    fill(gathered, 6, -6);
    fill(v_root, 3, -6);
    fill(exchanged_w, 3, -9);
    for (int round = 0; round < 2; round++) {
        fill(values, 2, rank == root ? 70 + round : 0);
        fill(part, 2, 10 * rank + round);
        fill(out, 6, 100 * rank + 1000 * round);
#define BOTH(name, ...) do { \
    if (round == 0) MPI_##name##_c(__VA_ARGS__, MPI_COMM_WORLD); \
    else { MPI_I##name##_c(__VA_ARGS__, MPI_COMM_WORLD, &request); MPI_Wait(&request, MPI_STATUS_IGNORE); } } while (0)
#define MPI_IBcast_c MPI_Ibcast_c
#define MPI_IGather_c MPI_Igather_c
#define MPI_IGatherv_c MPI_Igatherv_c
#define MPI_IScatter_c MPI_Iscatter_c
#define MPI_IScatterv_c MPI_Iscatterv_c
#define MPI_IAllgather_c MPI_Iallgather_c
#define MPI_IAllgatherv_c MPI_Iallgatherv_c
#define MPI_IAlltoall_c MPI_Ialltoall_c
#define MPI_IAlltoallv_c MPI_Ialltoallv_c
#define MPI_IAlltoallw_c MPI_Ialltoallw_c
        BOTH(Bcast, values, 2, MPI_INT, root);
        BOTH(Gather, part, 2, MPI_INT, gathered, 2, MPI_INT, 0);
        BOTH(Gatherv, part, 1, MPI_INT, v_root, ones, place, MPI_INT, root);
        BOTH(Scatter, out, 2, MPI_INT, some, 2, MPI_INT, 0);
        BOTH(Scatterv, out, ones, place, MPI_INT, &scattered_v, 1, MPI_INT, root);
        BOTH(Allgather, part, 2, MPI_INT, all, 2, MPI_INT);
        BOTH(Allgatherv, part, 1, MPI_INT, all_v, ones, place, MPI_INT);
        BOTH(Alltoall, out, 2, MPI_INT, exchanged, 2, MPI_INT);
        BOTH(Alltoallv, out, ones, place, MPI_INT, exchanged_v, ones, place, MPI_INT);
        BOTH(Alltoallw, out, ones, places_w, types, exchanged_w, ones, places_w, types);
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
}
