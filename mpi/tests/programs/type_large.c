/* Ranks: 1. A datatype whose size does not fit an int. */
#include "check.h"

static void program(void) {
    int count;
    MPI_Count many, low, length;
    MPI_Datatype type;
    MPI_Type_contiguous(1 << 30, MPI_DOUBLE, &type);
    MPI_Type_size(type, &count);
    named("size", count);
    MPI_Type_size_x(type, &many);
    say("%lld\n", (long long)many);
    MPI_Type_get_extent_x(type, &low, &length);
    say("%lld %lld\n", (long long)low, (long long)length);
    MPI_Type_free(&type);
    MPI_Type_contiguous_c((MPI_Count)3 << 32, MPI_CHAR, &type);
    MPI_Type_size_c(type, &many);
    say("%lld\n", (long long)many);
    MPI_Type_free(&type);
}
