/* Ranks: 1 2. Partitioned messages, several with one tag, beside other messages of that tag. */
#include "check.h"

static void program(void) {
    int next = (rank + 1) % size, before = (rank + size - 1) % size, flag, other = -1;
    int sent[2][6], got[2][6], list[2] = {2, 0};
    MPI_Request sends[2], receives[2], request;
    for (int i = 0; i < 2; i++) {
        MPI_Psend_init(sent[i], 3, 2, MPI_INT, next, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &sends[i]);
        MPI_Precv_init(got[i], 3, 2, MPI_INT, before, 9, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &receives[i]);
    }
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 2; i++) {
            fill(sent[i], 6, 100 * round + 10 * i + 1000 * rank);
            fill(got[i], 6, -100);
        }
        // The second one first.
        for (int i = 1; i >= 0; i--) {
            MPI_Start(&receives[i]);
            MPI_Start(&sends[i]);
            if (round == 0) {
                for (int p = 2; p >= 0; p--) MPI_Pready(p, sends[i]);
            } else if (round == 1) {
                MPI_Pready_range(0, 2, sends[i]);
            } else {
                MPI_Pready_list(2, list, sends[i]);
                MPI_Pready(1, sends[i]);
            }
        }
        MPI_Irecv(&other, 1, MPI_INT, before, 9, MPI_COMM_WORLD, &request);
        MPI_Send(&round, 1, MPI_INT, next, 9, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        say("other %d\n", other);
        do MPI_Parrived(receives[0], 1, &flag);
        while (!flag);
        MPI_Wait(&receives[0], MPI_STATUS_IGNORE);
        MPI_Wait(&receives[1], MPI_STATUS_IGNORE);
        MPI_Waitall(2, sends, MPI_STATUSES_IGNORE);
        ints("first", got[0], 6);
        ints("second", got[1], 6);
    }
    for (int i = 0; i < 2; i++) {
        MPI_Request_free(&sends[i]);
        MPI_Request_free(&receives[i]);
    }
    say("null %d\n", sends[0] == MPI_REQUEST_NULL);
}
