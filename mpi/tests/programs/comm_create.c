/* Ranks: 1 2 3 5. A communicator of a group, which only some ranks are in. */
#include "check.h"

static void program(void) {
    MPI_Group world, group;
    MPI_Comm part;
    int chosen[5], count = 0, at, of;
    for (int i = size - 1; i >= 0; i -= 2) chosen[count++] = i;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, count, chosen, &group);
    MPI_Comm_create(MPI_COMM_WORLD, group, &part);
    if (part == MPI_COMM_NULL) {
        say("null\n");
    } else {
        MPI_Comm_rank(part, &at);
        MPI_Comm_size(part, &of);
        int sum = rank;
        MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, part);
        say("%d of %d, sum %d\n", at, of, sum);
        MPI_Comm_free(&part);
    }
    MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_EMPTY, &part);
    say("of the empty group: null %d\n", part == MPI_COMM_NULL);
    MPI_Group_free(&group);
    MPI_Group_free(&world);
}
