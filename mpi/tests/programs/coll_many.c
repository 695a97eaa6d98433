/* Ranks: 2 3. Many different collectives after each other, without a barrier between. */
#include "check.h"

static void program(void) {
    long sum = 0;
    for (int i = 0; i < 200; i++) {
        long value = rank + i, in[3] = {0};
        MPI_Bcast(&value, 1, MPI_LONG, i % size, MPI_COMM_WORLD);
        sum += value;
        value += rank;
        MPI_Allreduce(&value, in, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        sum += in[0];
        MPI_Gather(&value, 1, MPI_LONG, in, 1, MPI_LONG, (i + 1) % size, MPI_COMM_WORLD);
        sum += in[0] - in[1];
        MPI_Scan(&value, in, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
        sum = (sum + in[0]) % 1000003;
        MPI_Allgather(&value, 1, MPI_LONG, in, 1, MPI_LONG, MPI_COMM_WORLD);
        sum += in[size - 1];
    }
    say("sum %ld\n", sum);
}
