/* Ranks: 2. Improbe and Imrecv, of a short and of a long message. */
#include "check.h"

static void program(void) {
    static int values[200000];
    int flag;
    MPI_Message message;
    MPI_Request request;
    MPI_Status status;
    if (rank == 0) {
        fill(values, LENGTH(values), 1);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Send(values, 3, MPI_INT, 1, 1, MPI_COMM_WORLD);
        MPI_Send(values, LENGTH(values), MPI_INT, 1, 2, MPI_COMM_WORLD);
        return;
    }
    MPI_Improbe(0, 1, MPI_COMM_WORLD, &flag, &message, &status);
    say("before %d\n", flag);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int tag = 1; tag < 3; tag++) {
        flag = 0;
        while (!flag) MPI_Improbe(0, tag, MPI_COMM_WORLD, &flag, &message, &status);
        status_of("improbe", &status, MPI_INT);
        MPI_Imrecv(values, LENGTH(values), MPI_INT, &message, &request);
        say("null: %d\n", message == MPI_MESSAGE_NULL);
        MPI_Wait(&request, &status);
        status_of("imrecv", &status, MPI_INT);
    }
    say("%d %d\n", values[0], values[LENGTH(values) - 1]);
}
