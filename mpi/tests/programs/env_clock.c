/* Ranks: 1. The clock goes forward, in ticks shorter than a millisecond. */
#include "check.h"

static void program(void) {
    double start = MPI_Wtime(), tick = MPI_Wtick();
    say("tick %d\n", tick > 0 && tick < 1e-3);
    while (MPI_Wtime() <= start) {}
    say("forward\n");
    double before = MPI_Wtime(), after = MPI_Wtime();
    say("never back %d\n", after >= before);
}
