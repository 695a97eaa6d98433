/* Ranks: 1. Bounds and extents of made datatypes, in all forms of the calls. */
#include "check.h"

static void show(const char *what, MPI_Datatype *type) {
    MPI_Aint lower, extent;
    MPI_Count low, length, bytes_count;
    MPI_Type_get_extent(*type, &lower, &extent);
    say("%s: %ld %ld", what, (long)lower, (long)extent);
    MPI_Type_get_true_extent(*type, &lower, &extent);
    say(", %ld %ld", (long)lower, (long)extent);
    MPI_Type_get_extent_x(*type, &low, &length);
    say(", %ld %ld", (long)low, (long)length);
    MPI_Type_get_true_extent_x(*type, &low, &length);
    say(", %ld %ld", (long)low, (long)length);
    MPI_Type_get_extent_c(*type, &low, &length);
    say(", %ld %ld", (long)low, (long)length);
    MPI_Type_get_true_extent_c(*type, &low, &length);
    say(", %ld %ld", (long)low, (long)length);
    MPI_Type_size_c(*type, &bytes_count);
    say(", size %ld\n", (long)bytes_count);
    MPI_Type_free(type);
}
static void program(void) {
    int lengths[3] = {1, 2, 1};
    MPI_Aint places[3] = {8, -16, 33};
    MPI_Datatype basics[3] = {MPI_CHAR, MPI_SHORT, MPI_DOUBLE}, type, inner;
    MPI_Type_contiguous(5, MPI_SHORT, &type);
    show("contiguous", &type);
    MPI_Type_vector(3, 2, -4, MPI_INT, &type);
    show("negative stride", &type);
    MPI_Type_create_struct(3, lengths, places, basics, &type);
    show("struct", &type);
    MPI_Type_create_struct(1, lengths, places + 2, basics, &type);
    show("char at 33", &type);
    MPI_Type_create_struct(2, lengths, places, basics + 1, &type);
    show("struct of short and double", &type);
    MPI_Type_create_resized(MPI_DOUBLE, -3, 20, &inner);
    MPI_Type_vector(2, 2, 3, inner, &type);
    show("vector of resized", &type);
    MPI_Type_contiguous(3, inner, &type);
    show("contiguous of resized", &type);
    MPI_Type_create_hvector(2, 1, 7, inner, &type);
    show("hvector of resized", &type);
    MPI_Type_free(&inner);
    MPI_Type_create_resized(MPI_INT, 4, -8, &type);
    show("negative extent", &type);
    MPI_Type_contiguous((1 << 30), MPI_DOUBLE, &type);
    MPI_Type_free(&type);
}
