/* Ranks: 2. A vector of structs of indexed blocks of pairs. */
#include "check.h"

static void program(void) {
    unsigned char out[400], in[400];
    int lengths[2] = {1, 2}, places[2] = {3, 0}, ones[2] = {1, 2}, count;
    MPI_Aint offsets[2] = {4, 40}, lower, extent;
    MPI_Datatype pair, indexed, structure, vector;
    for (int i = 0; i < 400; i++) out[i] = i % 251;
    memset(in, 0, sizeof in);
    MPI_Type_vector(2, 1, 2, MPI_SHORT, &pair);
    MPI_Type_indexed(2, lengths, places, pair, &indexed);
    MPI_Datatype types[2] = {indexed, MPI_INT};
    MPI_Type_create_struct(2, ones, offsets, types, &structure);
    MPI_Type_create_hvector(3, 1, 100, structure, &vector);
    MPI_Type_commit(&vector);
    MPI_Type_free(&pair);
    MPI_Type_free(&indexed);
    MPI_Type_free(&structure);
    MPI_Type_size(vector, &count);
    MPI_Type_get_extent(vector, &lower, &extent);
    say("size %d, lower bound %ld, extent %ld\n", count, (long)lower, (long)extent);
    if (rank == 0) {
        MPI_Send(out, 1, vector, 1, 0, MPI_COMM_WORLD);
        MPI_Send(out, 1, vector, 1, 1, MPI_COMM_WORLD);
    } else {
        MPI_Recv(in, 400, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        bytes("packed", in, count);
        memset(in, 0, sizeof in);
        MPI_Recv(in, 1, vector, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        bytes("in", in, 100);
        bytes("end", in + 200, 60);
    }
    MPI_Type_free(&vector);
}
