/* Ranks: 2. Messages of 1 MiB and 5 MiB, there and back. */
#include "check.h"

static void program(void) {
    const int lengths[] = {1 << 20, 5 << 20, (5 << 20) + 3};
    unsigned char *values = malloc(lengths[2]);
    MPI_Status status;
    for (int i = 0; i < 3; i++) {
        if (rank == 0) {
            for (int at = 0; at < lengths[i]; at++) values[at] = (unsigned char)(at * 7 + at / 251 + i);
            MPI_Send(values, lengths[i], MPI_BYTE, 1, i, MPI_COMM_WORLD);
            memset(values, 0, lengths[i]);
        }
        MPI_Recv(values, lengths[i], MPI_BYTE, !rank, i, MPI_COMM_WORLD, &status);
        status_of("status", &status, MPI_BYTE);
        int wrong = 0;
        for (int at = 0; at < lengths[i]; at++) wrong += values[at] != (unsigned char)(at * 7 + at / 251 + i);
        say("wrong: %d\n", wrong);
        if (rank == 1) MPI_Send(values, lengths[i], MPI_BYTE, 0, i, MPI_COMM_WORLD);
    }
    free(values);
}
