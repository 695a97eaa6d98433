/* Ranks: 1 2 3 5. No rank leaves a barrier before all have come. */
#include "check.h"

static void program(void) {
    int flag;
    MPI_Request request;
    MPI_Status status;
    for (int late = 0; late < size; late++) {
        if (rank == late) {
            for (int other = 0; other < size; other++) {
                MPI_Iprobe(other, 77 + late, MPI_COMM_WORLD, &flag, &status);
                say("early %d\n", flag);
            }
        }
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Isend(NULL, 0, MPI_INT, late, 77 + late, MPI_COMM_WORLD, &request);
        if (rank == late) {
            for (int other = 0; other < size; other++) {
                MPI_Recv(NULL, 0, MPI_INT, other, 77 + late, MPI_COMM_WORLD, &status);
            }
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < 100; i++) MPI_Barrier(MPI_COMM_WORLD);
    say("done\n");
}
