/* Ranks: 2. Buffered messages that fill the buffer twice; detach waits for them. */
#include "check.h"

static void program(void) {
    int value, length;
    int values[100];
    if (rank == 0) {
        int room;
        MPI_Pack_size(100, MPI_INT, MPI_COMM_WORLD, &room);
        room = 5 * (room + MPI_BSEND_OVERHEAD);
        void *buffer = malloc(room), *detached;
        MPI_Buffer_attach(buffer, room);
        for (int round = 0; round < 2; round++) {
            for (int i = 0; i < 5; i++) {
                fill(values, 100, 1000 * round + i);
                MPI_Bsend(values, 100, MPI_INT, 1, i, MPI_COMM_WORLD);
            }
            MPI_Buffer_flush();
        }
        MPI_Buffer_detach(&detached, &length);
        say("same: %d %d\n", detached == buffer, length == room);
        free(buffer);
        return;
    }
    for (int round = 0; round < 2; round++) {
        for (int i = 4; i >= 0; i--) {
            MPI_Recv(values, 100, MPI_INT, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            value = values[99];
            ints("last", &value, 1);
        }
    }
}
