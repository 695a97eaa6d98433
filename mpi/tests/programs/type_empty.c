/* Ranks: 2. Datatypes without data, and counts of zero. */
#include "check.h"

static void program(void) {
    int value = 7, lengths[2] = {0, 0}, places[2] = {4, 9}, count;
    MPI_Aint offsets[2] = {4, 9}, lower, extent;
    MPI_Datatype basics[2] = {MPI_INT, MPI_DOUBLE}, types[5];
    MPI_Status status;
    MPI_Type_contiguous(0, MPI_INT, types);
    MPI_Type_vector(0, 3, 4, MPI_INT, types + 1);
    MPI_Type_indexed(2, lengths, places, MPI_INT, types + 2);
    MPI_Type_create_struct(2, lengths, offsets, basics, types + 3);
    MPI_Type_create_struct(0, lengths, offsets, basics, types + 4);
    for (int i = 0; i < 5; i++) {
        MPI_Type_commit(types + i);
        MPI_Type_size(types[i], &count);
        MPI_Type_get_extent(types[i], &lower, &extent);
        say("size %d, %ld %ld\n", count, (long)lower, (long)extent);
        if (rank == 0) {
            MPI_Send(&value, 3, types[i], 1, i, MPI_COMM_WORLD);
        } else {
            MPI_Recv(&value, 1, MPI_INT, 0, i, MPI_COMM_WORLD, &status);
            status_of("status", &status, MPI_INT);
        }
        MPI_Type_free(types + i);
    }
    ints("value", &value, 1);
}
