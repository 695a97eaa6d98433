/* Ranks: 2 3 5. A communicator that only the ranks of its group make. */
#include "check.h"

static void program(void) {
    MPI_Group world, group;
    MPI_Comm part;
    int chosen[5], count = 0, at, of;
    for (int i = 1; i < size; i++) chosen[count++] = size - i;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, count, chosen, &group);
    if (rank != 0) {
        for (int tag = 0; tag < 3; tag++) {
            int sum = rank;
            MPI_Comm_create_group(MPI_COMM_WORLD, group, tag, &part);
            MPI_Comm_rank(part, &at);
            MPI_Comm_size(part, &of);
            MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, part);
            say("%d of %d, sum %d\n", at, of, sum);
            MPI_Comm_free(&part);
        }
    }
    MPI_Group_free(&group);
    MPI_Group_free(&world);
    MPI_Barrier(MPI_COMM_WORLD);
}
