/* Ranks: 1 2 3. More collectives are under way than a rank has room for. */
#include "check.h"

enum { MANY = 1500 };

static void program(void) {
    static MPI_Request requests[MANY];
    static int sums[MANY];
    for (int i = 0; i < MANY; i++) {
        sums[i] = rank + i;
        MPI_Iallreduce(MPI_IN_PLACE, &sums[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE);
    int right = 0, of_ranks = size * (size - 1) / 2;
    for (int i = 0; i < MANY; i++) right += sums[i] == size * i + of_ranks;
    say("%d right\n", right);
    for (int i = 0; i < MANY; i++) {
        MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &requests[i]);
    }
    for (int round = 0; round < 2; round++) {
        MPI_Startall(MANY, requests);
        MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE);
    }
    for (int i = 0; i < MANY; i++) MPI_Request_free(&requests[i]);
    say("all barriers\n");
}
