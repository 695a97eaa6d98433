/* Ranks: 2 3. Long nonblocking collectives, tested while they run. */
#include "check.h"

static void program(void) {
    enum { count = 100000 };
    int *sum = malloc(count * sizeof(int)), *all = malloc(size * count * sizeof(int)), *cast = malloc(count * sizeof(int));
    MPI_Request requests[3];
    int flag = 0, wrong = 0;
    fill(sum, count, rank);
    fill(all + rank * count, count, 7 * rank);
    fill(cast, count, rank == 1 ? 3 : 0);
    MPI_Iallreduce(MPI_IN_PLACE, sum, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, requests);
    MPI_Iallgather(MPI_IN_PLACE, 0, MPI_INT, all, count, MPI_INT, MPI_COMM_WORLD, requests + 1);
    MPI_Ibcast(cast, count, MPI_INT, 1, MPI_COMM_WORLD, requests + 2);
    while (!flag) MPI_Testall(3, requests, &flag, MPI_STATUSES_IGNORE);
    for (int i = 0; i < count; i++) {
        wrong += sum[i] != size * (size - 1) / 2 + size * i;
        wrong += cast[i] != 3 + i;
        for (int other = 0; other < size; other++) wrong += all[other * count + i] != 7 * other + i;
    }
    say("wrong: %d\n", wrong);
    free(sum);
    free(all);
    free(cast);
}
