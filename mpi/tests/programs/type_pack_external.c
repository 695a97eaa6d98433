/* Ranks: 1. The external representation has the bytes in big-endian order. */
#include "check.h"

static void program(void) {
    char buffer[100];
    short small = 0x0102;
    int number = 0x01020304, values[3] = {0};
    long long big = 0x0102030405060708;
    double value = 1.5;
    MPI_Aint position = 0, room;
    MPI_Pack_external("external32", &small, 1, MPI_SHORT, buffer, sizeof buffer, &position);
    MPI_Pack_external("external32", &number, 1, MPI_INT, buffer, sizeof buffer, &position);
    MPI_Pack_external("external32", &big, 1, MPI_LONG_LONG, buffer, sizeof buffer, &position);
    MPI_Pack_external("external32", &value, 1, MPI_DOUBLE, buffer, sizeof buffer, &position);
    say("position %ld\n", (long)position);
    bytes("packed", buffer, position);
    MPI_Pack_external_size("external32", 3, MPI_INT, &room);
    say("room %ld\n", (long)room);
    position = 2;
    MPI_Unpack_external("external32", buffer, sizeof buffer, &position, values, 1, MPI_INT);
    say("%x, position %ld\n", values[0], (long)position);
}
