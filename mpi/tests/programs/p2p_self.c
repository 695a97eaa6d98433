/* Ranks: 1 2. Messages of a rank to itself, short and long, in MPI_COMM_SELF and the world. */
#include "check.h"

static void program(void) {
    static int out[100000], in[100000];
    MPI_Comm comms[2] = {MPI_COMM_SELF, MPI_COMM_WORLD};
    MPI_Request request;
    MPI_Status status;
    for (int i = 0; i < 2; i++) {
        int me = i ? rank : 0;
        fill(out, LENGTH(out), rank);
        MPI_Isend(out, 3, MPI_INT, me, 1, comms[i], &request);
        MPI_Recv(in, 3, MPI_INT, me, 1, comms[i], &status);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        ints("in", in, 3);
        MPI_Irecv(in, LENGTH(in), MPI_INT, MPI_ANY_SOURCE, 2, comms[i], &request);
        MPI_Ssend(out, LENGTH(out), MPI_INT, me, 2, comms[i]);
        MPI_Wait(&request, &status);
        status_of("status", &status, MPI_INT);
        say("last %d\n", in[LENGTH(in) - 1] - rank);
        MPI_Sendrecv(out, 2, MPI_INT, me, 3, in, 2, MPI_INT, me, 3, comms[i], &status);
        ints("in", in, 2);
    }
}
