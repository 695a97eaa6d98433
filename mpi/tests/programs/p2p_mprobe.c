/* Ranks: 2. A matched message cannot be received by others, and later ones can. */
#include "check.h"

static void program(void) {
    int values[4] = {0}, flag;
    MPI_Message message;
    MPI_Status status;
    if (rank == 0) {
        for (int i = 1; i < 3; i++) {
            fill(values, 4, 10 * i);
            MPI_Send(values, i, MPI_INT, 1, 7, MPI_COMM_WORLD);
        }
        return;
    }
    MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &message, &status);
    status_of("mprobe", &status, MPI_INT);
    MPI_Recv(values, 4, MPI_INT, 0, 7, MPI_COMM_WORLD, &status);
    status_of("recv", &status, MPI_INT);
    ints("values", values, 4);
    MPI_Iprobe(0, 7, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    say("another: %d\n", flag);
    MPI_Mrecv(values, 4, MPI_INT, &message, &status);
    status_of("mrecv", &status, MPI_INT);
    ints("values", values, 4);
    say("null: %d\n", message == MPI_MESSAGE_NULL);
}
