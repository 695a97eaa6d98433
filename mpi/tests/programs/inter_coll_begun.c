/* Ranks: 2 3 4. Collectives between two groups that are begun, several at a time. */
#include "inter.h"

static void program(void) {
    int value = rank + 1, sum = 0, all[8], shared = 0, root;
    MPI_Request requests[4];
    connect_groups();
    root = is_odd ? 0 : own_rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
    if (root == MPI_ROOT) shared = 77;
    MPI_Ibarrier(inter, &requests[0]);
    MPI_Iallreduce(&value, &sum, 1, MPI_INT, MPI_SUM, inter, &requests[1]);
    MPI_Iallgather(&value, 1, MPI_INT, all, 1, MPI_INT, inter, &requests[2]);
    MPI_Ibcast(&shared, 1, MPI_INT, root, inter, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    say("sum %d\n", sum);
    ints("all", all, others);
    say("shared %d\n", shared);
    part_groups();
}
