/* Ranks: 2 3 5. Collectives between two groups that move data. */
#include "inter.h"

/* The root is the first even rank. */
static int root(void) {
    if (is_odd) return 0;
    return own_rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
}

static void program(void) {
    int sent[16], got[16], counts[8], places[8], sent_counts[8], sent_places[8];
    MPI_Aint bytes[8];
    (void)bytes;
    MPI_Datatype pair, types[8];
    connect_groups();
    MPI_Type_vector(2, 1, 2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Barrier(inter);
    fill(got, 16, -100);
    if (!is_odd && own_rank == 0) fill(got, 4, 40);
    MPI_Bcast(got, 4, MPI_INT, root(), inter);
    ints("bcast", got, 4);
    fill(got, 16, -100);
    if (!is_odd && own_rank == 0) fill(got, 4, 40);
    MPI_Bcast(got, 1, pair, root(), inter);
    ints("bcast of a vector", got, 4);
    fill(sent, 16, 100 * rank);
    fill(got, 16, -100);
    MPI_Gather(sent, 2, MPI_INT, got, 2, MPI_INT, root(), inter);
    ints("gather", got, 4);
    MPI_Scatter(sent, 2, MPI_INT, got, 2, MPI_INT, root(), inter);
    ints("scatter", got, 2);
    for (int i = 0; i < others; i++) {
        counts[i] = i + 1;
        places[i] = 3 * i;
        sent_counts[i] = own_rank + 1;
        sent_places[i] = 2 * i;
        types[i] = MPI_INT;
    }
    fill(got, 16, -100);
    MPI_Gatherv(sent, own_rank + 1, MPI_INT, got, counts, places, MPI_INT, root(), inter);
    ints("gatherv", got, 8);
    fill(got, 16, -100);
    MPI_Scatterv(sent, counts, places, MPI_INT, got, own_rank + 1, MPI_INT, root(), inter);
    ints("scatterv", got, 3);
    fill(got, 16, -100);
    MPI_Allgather(sent, 2, MPI_INT, got, 2, MPI_INT, inter);
    ints("allgather", got, 8);
    fill(got, 16, -100);
    MPI_Allgatherv(sent, own_rank + 1, MPI_INT, got, counts, places, MPI_INT, inter);
    ints("allgatherv", got, 10);
    fill(got, 16, -100);
    MPI_Alltoall(sent, 2, MPI_INT, got, 2, MPI_INT, inter);
    ints("alltoall", got, 8);
    fill(got, 16, -100);
    MPI_Alltoallv(sent, sent_counts, sent_places, MPI_INT, got, counts, places, MPI_INT, inter);
    ints("alltoallv", got, 10);
    for (int i = 0; i < others; i++) {
        places[i] *= sizeof(int);
        sent_places[i] *= sizeof(int);
    }
    fill(got, 16, -100);
    MPI_Alltoallw(sent, sent_counts, sent_places, types, got, counts, places, types, inter);
    ints("alltoallw", got, 10);
    MPI_Type_free(&pair);
    part_groups();
}
