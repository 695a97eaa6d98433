/* Ranks: 2 3. An intercommunicator of two groups alone. */
#include "check.h"

static void program(void) {
    MPI_Group world, own, other;
    MPI_Comm inter;
    int first = 0, sum = 0, count, remote;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &first, &own);
    MPI_Group_excl(world, 1, &first, &other);
    MPI_Intercomm_create_from_groups(rank == 0 ? own : other, 0, rank == 0 ? other : own, 0, "both",
                                     MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &inter);
    MPI_Comm_size(inter, &count);
    MPI_Comm_remote_size(inter, &remote);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, inter);
    say("%d and %d, sum %d\n", count, remote, sum);
    MPI_Comm_free(&inter);
    MPI_Group_free(&own);
    MPI_Group_free(&other);
    MPI_Group_free(&world);
}
