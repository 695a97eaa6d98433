/* Ranks: 1. Packing with counts. */
#include "check.h"

static void program(void) {
    char buffer[100];
    int values[6], in[6] = {0};
    MPI_Count position = 0, room;
    fill(values, 6, 1);
    MPI_Pack_c(values, 6, MPI_INT, buffer, sizeof buffer, &position, MPI_COMM_WORLD);
    say("position %d\n", (int)position);
    MPI_Pack_size_c(6, MPI_INT, MPI_COMM_WORLD, &room);
    say("room %d\n", room >= 24);
    position = 8;
    MPI_Unpack_c(buffer, sizeof buffer, &position, in, 4, MPI_INT, MPI_COMM_WORLD);
    ints("in", in, 6);
    position = 0;
    MPI_Pack_external_c("external32", values, 2, MPI_INT, buffer, sizeof buffer, &position);
    bytes("external", buffer, 8);
    position = 0;
    MPI_Unpack_external_c("external32", buffer, sizeof buffer, &position, in, 2, MPI_INT);
    ints("in", in, 2);
    MPI_Pack_external_size_c("external32", 2, MPI_DOUBLE, &room);
    say("room %d\n", (int)room);
}
