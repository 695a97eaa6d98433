/* Ranks: 2. Every basic datatype arrives as it was sent. */
#include "check.h"

#define MOVE(type, basic) do { \
    type out = (type)(42), in = (type)0; \
    MPI_Status status; \
    if (rank == 0) MPI_Send(&out, 1, basic, 1, 0, MPI_COMM_WORLD); \
    else { MPI_Recv(&in, 1, basic, 0, 0, MPI_COMM_WORLD, &status); \
        say("%s %d ", #basic, in == out); status_of("status", &status, basic); } } while (0)
static void program(void) {
    MOVE(char, MPI_CHAR); MOVE(signed char, MPI_SIGNED_CHAR); MOVE(unsigned char, MPI_UNSIGNED_CHAR);
    MOVE(char, MPI_BYTE); MOVE(short, MPI_SHORT); MOVE(unsigned short, MPI_UNSIGNED_SHORT);
    MOVE(int, MPI_INT); MOVE(unsigned, MPI_UNSIGNED); MOVE(long, MPI_LONG); MOVE(unsigned long, MPI_UNSIGNED_LONG);
    MOVE(long long, MPI_LONG_LONG); MOVE(long long, MPI_LONG_LONG_INT); MOVE(unsigned long long, MPI_UNSIGNED_LONG_LONG);
    MOVE(float, MPI_FLOAT); MOVE(double, MPI_DOUBLE); MOVE(long double, MPI_LONG_DOUBLE); MOVE(_Bool, MPI_C_BOOL);
    MOVE(int8_t, MPI_INT8_T); MOVE(int16_t, MPI_INT16_T); MOVE(int32_t, MPI_INT32_T); MOVE(int64_t, MPI_INT64_T);
    MOVE(uint8_t, MPI_UINT8_T); MOVE(uint16_t, MPI_UINT16_T); MOVE(uint32_t, MPI_UINT32_T); MOVE(uint64_t, MPI_UINT64_T);
    MOVE(MPI_Aint, MPI_AINT); MOVE(MPI_Offset, MPI_OFFSET); MOVE(MPI_Count, MPI_COUNT);
    MOVE(float _Complex, MPI_C_COMPLEX); MOVE(float _Complex, MPI_C_FLOAT_COMPLEX);
    MOVE(double _Complex, MPI_C_DOUBLE_COMPLEX); MOVE(long double _Complex, MPI_C_LONG_DOUBLE_COMPLEX);
}
