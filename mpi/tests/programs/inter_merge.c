/* Ranks: 2 3 4. Two groups become one, in the order that they say. */
#include "inter.h"

static void program(void) {
    int all[8], place, flag;
    MPI_Comm merged;
    connect_groups();
    for (int odd_first = 0; odd_first < 2; odd_first++) {
        MPI_Intercomm_merge(inter, is_odd != odd_first, &merged);
        MPI_Comm_rank(merged, &place);
        MPI_Comm_test_inter(merged, &flag);
        MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, merged);
        say("place %d, inter %d\n", place, flag);
        ints("all", all, size);
        MPI_Comm_free(&merged);
    }
    part_groups();
}
