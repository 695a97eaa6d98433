/* Ranks: 1. Messages to and from no process. */
#include "check.h"

static void program(void) {
    int value = 5, flag;
    MPI_Request requests[2];
    MPI_Status status;
    MPI_Send(&value, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
    MPI_Ssend(&value, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
    MPI_Recv(&value, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &status);
    status_of("recv", &status, MPI_INT);
    MPI_Probe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, &status);
    status_of("probe", &status, MPI_INT);
    MPI_Iprobe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, &flag, &status);
    say("iprobe %d\n", flag);
    MPI_Irecv(&value, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, requests);
    MPI_Isend(&value, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, requests + 1);
    MPI_Wait(requests, &status);
    status_of("irecv", &status, MPI_INT);
    MPI_Wait(requests + 1, &status);
    MPI_Sendrecv(&value, 1, MPI_INT, MPI_PROC_NULL, 1, &value, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &status);
    status_of("sendrecv", &status, MPI_INT);
    MPI_Recv_init(&value, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, requests);
    MPI_Start(requests);
    MPI_Wait(requests, MPI_STATUS_IGNORE);
    MPI_Request_free(requests);
    ints("value", &value, 1);
}
