/* Ranks: 2 3. All operations on all integers. */
#include "check.h"

#define REDUCE(type, basic) do { \
    type out[3] = {(type)(rank + 2), (type)(5 - rank), (type)(rank % 2)}, in[3]; \
    for (int op = 0; op < LENGTH(ops); op++) { \
        MPI_Allreduce(out, in, 3, basic, ops[op], MPI_COMM_WORLD); \
        say("%lld %lld %lld; ", (long long)in[0], (long long)in[1], (long long)in[2]); \
    } say(#basic "\n"); } while (0)
static void program(void) {
    MPI_Op ops[] = {MPI_SUM, MPI_PROD, MPI_MAX, MPI_MIN, MPI_BAND, MPI_BOR, MPI_BXOR, MPI_LAND, MPI_LOR, MPI_LXOR};
    REDUCE(signed char, MPI_SIGNED_CHAR); REDUCE(unsigned char, MPI_UNSIGNED_CHAR);
    REDUCE(short, MPI_SHORT); REDUCE(unsigned short, MPI_UNSIGNED_SHORT);
    REDUCE(int, MPI_INT); REDUCE(unsigned, MPI_UNSIGNED); REDUCE(long, MPI_LONG); REDUCE(unsigned long, MPI_UNSIGNED_LONG);
    REDUCE(long long, MPI_LONG_LONG); REDUCE(unsigned long long, MPI_UNSIGNED_LONG_LONG);
    REDUCE(int8_t, MPI_INT8_T); REDUCE(int16_t, MPI_INT16_T); REDUCE(int32_t, MPI_INT32_T); REDUCE(int64_t, MPI_INT64_T);
    REDUCE(uint8_t, MPI_UINT8_T); REDUCE(uint16_t, MPI_UINT16_T); REDUCE(uint32_t, MPI_UINT32_T); REDUCE(uint64_t, MPI_UINT64_T);
    REDUCE(char, MPI_CHAR); REDUCE(MPI_Aint, MPI_AINT); REDUCE(MPI_Offset, MPI_OFFSET); REDUCE(MPI_Count, MPI_COUNT);
}
