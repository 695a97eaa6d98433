/* Ranks: 1 2. A send and a receive by one request, also in one buffer. */
#include "check.h"

static void program(void) {
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    int sent[3], got[3] = {0, 0, 0};
    MPI_Request request;
    fill(sent, 3, 10 * rank);
    MPI_Isendrecv(sent, 3, MPI_INT, next, 5, got, 3, MPI_INT, before, 5, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    ints("got", got, 3);
    MPI_Isendrecv_replace(sent, 3, MPI_INT, next, 6, before, 6, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    ints("replaced", sent, 3);
    say("null %d\n", request == MPI_REQUEST_NULL);
    MPI_Isendrecv_c(sent, 3, MPI_INT, next, 7, got, 3, MPI_INT, before, 7, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    ints("got", got, 3);
    MPI_Isendrecv_replace_c(got, 2, MPI_INT, next, 8, before, 8, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    ints("replaced", got, 3);
    MPI_Isendrecv(sent, 3, MPI_INT, MPI_PROC_NULL, 5, got, 3, MPI_INT, MPI_PROC_NULL, 5,
                  MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    ints("nobody", got, 3);
}
