/* Ranks: 2 3 5. Collectives between two groups that combine values. */
#include "inter.h"

static void program(void) {
    int sent[12], got[12], counts[8], each, root = is_odd ? 0 : MPI_PROC_NULL;
    struct { double value; int index; } pair, best = {0, 0};
    connect_groups();
    root = is_odd ? 0 : own_rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
    fill(sent, 12, 10 * rank);
    fill(got, 12, -100);
    if (root == MPI_PROC_NULL) {
        // The other arguments mean nothing.
        MPI_Reduce(NULL, NULL, 0, MPI_BYTE, MPI_SUM, root, inter);
    } else {
        MPI_Reduce(sent, got, 3, MPI_INT, MPI_SUM, root, inter);
    }
    ints("reduce", got, 3);
    fill(got, 12, -100);
    MPI_Allreduce(sent, got, 3, MPI_INT, MPI_MAX, inter);
    ints("allreduce", got, 3);
    pair.value = rank % 3;
    pair.index = rank;
    MPI_Allreduce(&pair, &best, 1, MPI_DOUBLE_INT, MPI_MAXLOC, inter);
    say("best %g at %d\n", best.value, best.index);
    // Twelve values, dealt to 1, 2, 3 members.
    each = 12 / own_size;
    fill(got, 12, -100);
    if (12 % own_size == 0) {
        MPI_Reduce_scatter_block(sent, got, each, MPI_INT, MPI_SUM, inter);
        ints("dealt evenly", got, each);
    }
    for (int i = 0; i < own_size; i++) counts[i] = i == 0 ? 12 - 2 * (own_size - 1) : 2;
    fill(got, 12, -100);
    MPI_Reduce_scatter(sent, got, counts, MPI_INT, MPI_SUM, inter);
    ints("dealt", got, counts[own_rank]);
    part_groups();
}
