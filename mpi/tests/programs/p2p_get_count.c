/* Ranks: 1. Counts of a message by datatypes that do and do not fit its length. */
#include "check.h"

static void program(void) {
    char in[64];
    int out[7], count;
    MPI_Datatype pair, empty;
    MPI_Request request;
    MPI_Status status;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Type_contiguous(0, MPI_INT, &empty);
    MPI_Type_commit(&empty);
    for (int length = 0; length < 8; length += 1) {
        MPI_Isend(out, length, MPI_INT, 0, 0, MPI_COMM_SELF, &request);
        MPI_Recv(in, 64, MPI_BYTE, 0, 0, MPI_COMM_SELF, &status);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        status_of("ints", &status, MPI_INT);
        status_of("pairs", &status, pair);
        status_of("doubles", &status, MPI_DOUBLE);
        status_of("bytes", &status, MPI_BYTE);
        MPI_Get_elements(&status, pair, &count);
        named("elements", count);
    }
    MPI_Isend(out, 0, MPI_INT, 0, 0, MPI_COMM_SELF, &request);
    MPI_Recv(in, 2, empty, 0, 0, MPI_COMM_SELF, &status);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Get_elements(&status, empty, &count);
    named("elements of empty", count);
    MPI_Type_free(&pair);
    MPI_Type_free(&empty);
}
