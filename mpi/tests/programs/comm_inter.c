/* Ranks: 1. The world is no intercommunicator, and has no parent. */
#include "check.h"

static void program(void) {
    int flag;
    MPI_Comm parent;
    MPI_Comm_test_inter(MPI_COMM_WORLD, &flag);
    say("inter %d\n", flag);
    MPI_Comm_get_parent(&parent);
    say("parent %d\n", parent != MPI_COMM_NULL);
}
