/* Ranks: 1 2 3. Persistent collectives that move data, with counts. */
#include "check.h"

static void program(void) {
    int part[2], out[6], in[6], root = size - 1;
    MPI_Count ones[3] = {1, 1, 1};
    MPI_Aint place[3], bytes_place[3] = {0, 4, 8};
    MPI_Datatype types[3] = {MPI_INT, MPI_INT, MPI_INT};
    MPI_Request request;
    for (int i = 0; i < 3; i++) place[i] = i < size ? size - 1 - i : i;
    fill(part, 2, 10 * rank);
    fill(out, 6, 100 * rank);
#define RUN(name, count, ...) do { \
    fill(in, 6, -9); \
    MPI_##name##_init_c(__VA_ARGS__, MPI_COMM_WORLD, MPI_INFO_NULL, &request); \
    for (int i = 0; i < 2; i++) { MPI_Start(&request); MPI_Wait(&request, MPI_STATUS_IGNORE); } \
    MPI_Request_free(&request); ints(#name, in, count); } while (0)
    RUN(Bcast, 2, rank == root ? part : in, 2, MPI_INT, root);
    RUN(Gather, 6, part, 2, MPI_INT, in, 2, MPI_INT, root);
    RUN(Gatherv, 3, part, 1, MPI_INT, in, ones, place, MPI_INT, root);
    RUN(Scatter, 2, out, 2, MPI_INT, in, 2, MPI_INT, root);
    RUN(Scatterv, 1, out, ones, place, MPI_INT, in, 1, MPI_INT, root);
    RUN(Allgather, 6, part, 2, MPI_INT, in, 2, MPI_INT);
    RUN(Allgatherv, 3, part, 1, MPI_INT, in, ones, place, MPI_INT);
    RUN(Alltoall, 6, out, 2, MPI_INT, in, 2, MPI_INT);
    RUN(Alltoallv, 3, out, ones, place, MPI_INT, in, ones, place, MPI_INT);
    RUN(Alltoallw, 3, out, ones, bytes_place, types, in, ones, bytes_place, types);
}
