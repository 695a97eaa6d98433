/* Ranks: 1. Sizes and extents of the basic datatypes. */
#include "check.h"

#define SHOW(type) show(#type, type)
static void show(const char *name, MPI_Datatype type) {
    int count;
    MPI_Aint lower, extent, true_lower, true_extent;
    MPI_Count many;
    MPI_Type_size(type, &count);
    MPI_Type_size_x(type, &many);
    MPI_Type_get_extent(type, &lower, &extent);
    MPI_Type_get_true_extent(type, &true_lower, &true_extent);
    say("%s: %d %d %ld %ld %ld %ld\n", name, count, (int)many, (long)lower, (long)extent, (long)true_lower, (long)true_extent);
}
static void program(void) {
    SHOW(MPI_CHAR); SHOW(MPI_SIGNED_CHAR); SHOW(MPI_UNSIGNED_CHAR); SHOW(MPI_BYTE); SHOW(MPI_PACKED);
    SHOW(MPI_SHORT); SHOW(MPI_UNSIGNED_SHORT); SHOW(MPI_INT); SHOW(MPI_UNSIGNED); SHOW(MPI_LONG);
    SHOW(MPI_UNSIGNED_LONG); SHOW(MPI_LONG_LONG); SHOW(MPI_UNSIGNED_LONG_LONG); SHOW(MPI_WCHAR);
    SHOW(MPI_FLOAT); SHOW(MPI_DOUBLE); SHOW(MPI_LONG_DOUBLE); SHOW(MPI_C_BOOL);
    SHOW(MPI_INT8_T); SHOW(MPI_INT16_T); SHOW(MPI_INT32_T); SHOW(MPI_INT64_T);
    SHOW(MPI_UINT8_T); SHOW(MPI_UINT16_T); SHOW(MPI_UINT32_T); SHOW(MPI_UINT64_T);
    SHOW(MPI_AINT); SHOW(MPI_OFFSET); SHOW(MPI_COUNT);
    SHOW(MPI_C_FLOAT_COMPLEX); SHOW(MPI_C_DOUBLE_COMPLEX); SHOW(MPI_C_LONG_DOUBLE_COMPLEX);
    SHOW(MPI_CXX_BOOL); SHOW(MPI_CXX_FLOAT_COMPLEX); SHOW(MPI_CXX_DOUBLE_COMPLEX);
    SHOW(MPI_2INT); SHOW(MPI_SHORT_INT); SHOW(MPI_FLOAT_INT); SHOW(MPI_DOUBLE_INT); SHOW(MPI_LONG_INT);
    SHOW(MPI_LONG_DOUBLE_INT);
}
