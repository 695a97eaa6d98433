/* Ranks: 2. An array of structs with padding. */
#include "check.h"

struct thing { char letter; double value; short small[3]; int number; };
static void program(void) {
    struct thing things[3];
    int lengths[4] = {1, 1, 3, 1};
    MPI_Aint places[4] = {0, 8, 16, 24}, lower, extent;
    MPI_Datatype types[4] = {MPI_CHAR, MPI_DOUBLE, MPI_SHORT, MPI_INT}, type;
    int bytes_count;
    MPI_Type_create_struct(4, lengths, places, types, &type);
    MPI_Type_commit(&type);
    MPI_Type_get_extent(type, &lower, &extent);
    MPI_Type_size(type, &bytes_count);
    say("size %d, lower bound %ld, extent %ld of %d\n", bytes_count, (long)lower, (long)extent, (int)sizeof(struct thing));
    memset(things, 0xee, sizeof things);
    if (rank == 0) {
        for (int i = 0; i < 3; i++) {
            things[i] = (struct thing){.letter = 'a' + i, .value = i / 2.0, .small = {i, i + 1, i + 2}, .number = -i};
        }
        MPI_Send(things, 3, type, 1, 0, MPI_COMM_WORLD);
    } else {
        MPI_Status status;
        MPI_Recv(things, 3, type, 0, 0, MPI_COMM_WORLD, &status);
        status_of("status", &status, type);
        for (int i = 0; i < 3; i++) {
            struct thing *at = things + i;
            say("%c %g %d %d %d %d\n", at->letter, at->value, at->small[0], at->small[1], at->small[2], at->number);
        }
        bytes("padding", (char *)things + 1, 7);
    }
    MPI_Type_free(&type);
}
