/* Ranks: 2. Thousands of sends are pending whose requests have gone, or that have none. */
#include "check.h"

enum { COUNT = 3000 };

static void program(void) {
    int value, wrong = 0;
    static int values[COUNT];
    int bytes = COUNT * ((int)sizeof value + MPI_BSEND_OVERHEAD);
    void *buffer = malloc(bytes);
    for (int round = 0; round < 4; round++) {
        if (round == 0) MPI_Buffer_attach(buffer, bytes);
        for (int i = 0; i < COUNT && rank == 0; i++) {
            values[i] = i + round;
            if (round % 2 == 0) {
                MPI_Bsend(&values[i], 1, MPI_INT, 1, round, MPI_COMM_WORLD);
            } else {
                MPI_Request request;
                MPI_Isend(&values[i], 1, MPI_INT, 1, round, MPI_COMM_WORLD, &request);
                MPI_Request_free(&request);
            }
        }
        // The other rank receives nothing before all of them are pending.
        MPI_Barrier(MPI_COMM_WORLD);
        for (int i = 0; i < COUNT && rank == 1; i++) {
            MPI_Recv(&value, 1, MPI_INT, 0, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            wrong += value != i + round;
        }
        MPI_Barrier(MPI_COMM_WORLD);
        // So the buffer is free for the next round.
        if (round == 2) MPI_Buffer_detach(&buffer, &bytes);
    }
    say("wrong %d\n", wrong);
    free(buffer);
}
