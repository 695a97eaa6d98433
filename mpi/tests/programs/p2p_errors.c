/* Ranks: 2. The class of the error for each wrong argument of a message. */
#include "check.h"

static void program(void) {
    int value = 0;
    MPI_Request request;
    MPI_Status status;
    MPI_Datatype vector;
    errors_return();
    MPI_Type_vector(2, 1, 2, MPI_INT, &vector);
    result("rank", MPI_Send(&value, 1, MPI_INT, size, 0, MPI_COMM_WORLD));
    result("rank", MPI_Send(&value, 1, MPI_INT, -9, 0, MPI_COMM_WORLD));
    result("any source", MPI_Send(&value, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD));
    result("tag", MPI_Send(&value, 1, MPI_INT, 0, -7, MPI_COMM_WORLD));
    result("any tag", MPI_Isend(&value, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &request));
    result("count", MPI_Send(&value, -1, MPI_INT, 0, 0, MPI_COMM_WORLD));
    result("datatype", MPI_Send(&value, 1, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_WORLD));
    result("uncommitted", MPI_Send(&value, 1, vector, 0, 0, MPI_COMM_WORLD));
    result("comm", MPI_Send(&value, 1, MPI_INT, 0, 0, MPI_COMM_NULL));
    result("source", MPI_Recv(&value, 1, MPI_INT, size, 0, MPI_COMM_WORLD, &status));
    result("tag", MPI_Irecv(&value, 1, MPI_INT, 0, -7, MPI_COMM_WORLD, &request));
    result("count", MPI_Recv(&value, -2, MPI_INT, 0, 0, MPI_COMM_WORLD, &status));
    result("probe", MPI_Probe(size + 1, 0, MPI_COMM_WORLD, &status));
    request = MPI_REQUEST_NULL;
    result("start", MPI_Start(&request));
    result("free", MPI_Request_free(&request));
    result("cancel", MPI_Cancel(&request));
    say("waitall: refused %d\n", MPI_Waitall(-1, &request, &status) != MPI_SUCCESS);
    MPI_Type_free(&vector);
}
