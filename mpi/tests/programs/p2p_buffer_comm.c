/* Ranks: 2. A buffer of a communicator, and flushes that are begun. */
#include "check.h"

static void program(void) {
    char room[4096], *back;
    int value = 7 + rank, got = 0, bytes;
    MPI_Count wide;
    MPI_Comm comm;
    MPI_Request request;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_attach_buffer(comm, room, sizeof room);
    MPI_Bsend(&value, 1, MPI_INT, 1 - rank, 1, comm);
    MPI_Recv(&got, 1, MPI_INT, 1 - rank, 1, comm, MPI_STATUS_IGNORE);
    say("got %d\n", got);
    MPI_Comm_flush_buffer(comm);
    MPI_Comm_iflush_buffer(comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_detach_buffer(comm, &back, &bytes);
    say("mine %d, %d bytes\n", back == room, bytes);
    MPI_Comm_attach_buffer_c(comm, room, sizeof room);
    MPI_Comm_detach_buffer_c(comm, &back, &wide);
    say("mine %d, %d bytes\n", back == room, (int)wide);
    MPI_Comm_free(&comm);
    MPI_Buffer_attach(room, sizeof room);
    MPI_Bsend(&value, 1, MPI_INT, 1 - rank, 2, MPI_COMM_WORLD);
    MPI_Recv(&got, 1, MPI_INT, 1 - rank, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Buffer_iflush(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Buffer_detach(&back, &bytes);
    say("got %d, mine %d, %d bytes\n", got, back == room, bytes);
}
