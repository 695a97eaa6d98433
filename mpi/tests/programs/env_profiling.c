/* Ranks: 1 2. A function of the program stands before one of the library. */
#define OWN_MAIN
#include "check.h"

static int sends;

int MPI_Send(const void *buffer, int count, MPI_Datatype datatype, int to, int tag, MPI_Comm comm) {
    sends++;
    return PMPI_Send(buffer, count, datatype, to, tag, comm);
}

int main(int argc, char **argv) {
    int value = 3;
    PMPI_Init(&argc, &argv);
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Send(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
    PMPI_Barrier(MPI_COMM_WORLD);
    MPI_Pcontrol(1);
    if (rank == 0) printf("%d sends\n", sends);
    PMPI_Finalize();
    return 0;
}
