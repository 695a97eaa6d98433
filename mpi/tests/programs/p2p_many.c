/* Ranks: 2. A message behind many that no receive has taken, and many receives and synchronous
 * sends in progress. */
#include "check.h"

enum { MANY = 9000 };

static void program(void) {
    static MPI_Request requests[MANY];
    static int values[MANY];
    int last = MANY, right = 0;
    if (rank == 0) {
        fill(values, MANY, 0);
        for (int i = 0; i < MANY; i++) {
            MPI_Isend(&values[i], 1, MPI_INT, 1, 7, MPI_COMM_WORLD, &requests[i]);
        }
        MPI_Send(&last, 1, MPI_INT, 1, 9, MPI_COMM_WORLD);
        MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < MANY; i++) {
            MPI_Issend(&values[i], 1, MPI_INT, 1, i, MPI_COMM_WORLD, &requests[i]);
        }
        MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE);
        return;
    }
    last = 0;
    MPI_Recv(&last, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    say("behind %d\n", last);
    for (int i = 0; i < MANY; i++) {
        MPI_Recv(&values[i], 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        right += values[i] == i;
    }
    say("%d in order\n", right);
    right = 0;
    for (int i = 0; i < MANY; i++) {
        MPI_Irecv(&values[i], 1, MPI_INT, 0, i, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < MANY; i++) right += values[i] == i;
    say("%d right\n", right);
}
