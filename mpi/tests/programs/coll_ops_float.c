/* Ranks: 2 3. The operations on floating-point numbers, complex numbers, booleans, and bytes. */
#include "check.h"

#define REDUCE(type, basic) do { \
    type out[3] = {(type)(rank + 2.5), (type)(-rank), (type)(0.25 * rank)}, in[3]; \
    for (int op = 0; op < 4; op++) { \
        MPI_Allreduce(out, in, 3, basic, ops[op], MPI_COMM_WORLD); \
        say("%g %g %g; ", (double)in[0], (double)in[1], (double)in[2]); \
    } say(#basic "\n"); } while (0)
#define COMPLEX(type, part, basic) do { \
    part out[4] = {rank + 1, -2, 0, rank}, in[4]; \
    for (int op = 0; op < 2; op++) { \
        MPI_Allreduce(out, in, 2, basic, ops[op], MPI_COMM_WORLD); \
        say("%g %g, %g %g; ", (double)in[0], (double)in[1], (double)in[2], (double)in[3]); \
    } say(#basic "\n"); } while (0)
static void program(void) {
    MPI_Op ops[] = {MPI_SUM, MPI_PROD, MPI_MAX, MPI_MIN}, bits[] = {MPI_BAND, MPI_BOR, MPI_BXOR}, logic[] = {MPI_LAND, MPI_LOR, MPI_LXOR};
    REDUCE(float, MPI_FLOAT);
    REDUCE(double, MPI_DOUBLE);
    REDUCE(long double, MPI_LONG_DOUBLE);
    COMPLEX(float _Complex, float, MPI_C_COMPLEX);
    COMPLEX(float _Complex, float, MPI_C_FLOAT_COMPLEX);
    COMPLEX(double _Complex, double, MPI_C_DOUBLE_COMPLEX);
    COMPLEX(long double _Complex, long double, MPI_C_LONG_DOUBLE_COMPLEX);
    unsigned char byte = 0x55 + rank, result_byte;
    _Bool yes = rank % 2, result_bool;
    for (int op = 0; op < 3; op++) {
        MPI_Allreduce(&byte, &result_byte, 1, MPI_BYTE, bits[op], MPI_COMM_WORLD);
        MPI_Allreduce(&yes, &result_bool, 1, MPI_C_BOOL, logic[op], MPI_COMM_WORLD);
        say("%x %d\n", result_byte, result_bool);
    }
}
