/* Ranks: 2 3. Probe tells the length of a message, which stays where it is. */
#include "check.h"

static void program(void) {
    int values[10];
    MPI_Status status;
    if (rank != 0) {
        fill(values, 10, rank);
        MPI_Send(values, 3 + rank, MPI_INT, 0, rank, MPI_COMM_WORLD);
        return;
    }
    for (int from = 1; from < size; from++) {
        MPI_Probe(from, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        status_of("probe", &status, MPI_INT);
        MPI_Probe(MPI_ANY_SOURCE, from, MPI_COMM_WORLD, &status);
        status_of("again", &status, MPI_INT);
        int count;
        MPI_Get_count(&status, MPI_INT, &count);
        MPI_Recv(values, count, MPI_INT, from, from, MPI_COMM_WORLD, &status);
        ints("values", values, count);
    }
}
