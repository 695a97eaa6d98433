/* Ranks: 1 2 3 5. Broadcasts of several lengths from each root. */
#include "check.h"

static void program(void) {
    static int values[100000];
    const int lengths[] = {0, 1, 7, 1000, 100000};
    for (int root = 0; root < size; root++) {
        for (int i = 0; i < LENGTH(lengths); i++) {
            int sum = 0;
            fill(values, lengths[i], rank == root ? root * 10 : -1);
            MPI_Bcast(values, lengths[i], MPI_INT, root, MPI_COMM_WORLD);
            for (int at = 0; at < lengths[i]; at++) sum += (values[at] == root * 10 + at);
            say("root %d: %d\n", root, sum);
        }
    }
}
