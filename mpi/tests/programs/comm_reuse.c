/* Ranks: 2 3. Two thousand communicators after each other. */
#include "check.h"

static void program(void) {
    MPI_Comm copy;
    long sum = 0;
    for (int i = 0; i < 2000; i++) {
        if (i % 2) MPI_Comm_dup(MPI_COMM_WORLD, &copy);
        else MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &copy);
        if (i % 100 == 0) {
            int value = rank + i;
            MPI_Bcast(&value, 1, MPI_INT, i % size, copy);
            sum += value;
        }
        MPI_Comm_free(&copy);
    }
    say("sum %ld\n", sum);
}
