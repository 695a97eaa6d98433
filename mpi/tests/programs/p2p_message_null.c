/* Ranks: 1. Matched probes of no process. */
#include "check.h"

static void program(void) {
    int value = 5, flag;
    MPI_Message message;
    MPI_Request request;
    MPI_Status status;
    MPI_Mprobe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &message, &status);
    status_of("mprobe", &status, MPI_INT);
    say("no process: %d\n", message == MPI_MESSAGE_NO_PROC);
    MPI_Mrecv(&value, 1, MPI_INT, &message, &status);
    status_of("mrecv", &status, MPI_INT);
    say("null: %d, value %d\n", message == MPI_MESSAGE_NULL, value);
    MPI_Improbe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &flag, &message, &status);
    say("improbe %d, no process: %d\n", flag, message == MPI_MESSAGE_NO_PROC);
    MPI_Imrecv(&value, 1, MPI_INT, &message, &request);
    MPI_Wait(&request, &status);
    status_of("imrecv", &status, MPI_INT);
}
