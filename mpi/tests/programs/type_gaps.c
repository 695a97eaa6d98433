/* Ranks: 2. What lies between the elements of a receive stays as it was, for each constructor. */
#include "check.h"

static void fill_and_receive(const char *what, MPI_Datatype type) {
    unsigned char out[64], in[64];
    int length;
    for (int i = 0; i < 64; i++) out[i] = i + 1;
    memset(in, 0xaa, sizeof in);
    MPI_Type_commit(&type);
    MPI_Type_size(type, &length);
    if (rank == 0) MPI_Send(out, length, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    else MPI_Recv(in + 16, 1, type, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) bytes(what, in, 64);
    MPI_Type_free(&type);
}
static void program(void) {
    int lengths[3] = {2, 1, 3}, places[3] = {5, 0, 9}, sizes[2] = {4, 6}, parts[2] = {2, 3}, starts[2] = {1, 2};
    MPI_Aint offsets[3] = {20, -8, 4};
    MPI_Datatype types[3] = {MPI_SHORT, MPI_INT, MPI_CHAR}, type;
    MPI_Type_vector(4, 2, 3, MPI_SHORT, &type);
    fill_and_receive("vector", type);
    MPI_Type_indexed(3, lengths, places, MPI_SHORT, &type);
    fill_and_receive("indexed", type);
    MPI_Type_create_hindexed(3, lengths, offsets, MPI_CHAR, &type);
    fill_and_receive("hindexed", type);
    MPI_Type_create_struct(3, lengths, offsets, types, &type);
    fill_and_receive("struct", type);
    MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_FORTRAN, MPI_SHORT, &type);
    fill_and_receive("subarray", type);
    MPI_Type_create_hvector(3, 1, 7, MPI_SHORT, &type);
    fill_and_receive("hvector", type);
}
