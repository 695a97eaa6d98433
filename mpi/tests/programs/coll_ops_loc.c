/* Ranks: 2 3 5. The smallest and largest value with its place, of each pair type. */
#include "check.h"

#define REDUCE(type, basic) do { \
    struct { type value; int at; } out[3], in[3]; \
    memset(out, 0, sizeof out); memset(in, 0, sizeof in); \
    for (int i = 0; i < 3; i++) { out[i].value = (type)((rank * 2 + i) % 3); out[i].at = 10 * rank + i; } \
    MPI_Allreduce(out, in, 3, basic, MPI_MAXLOC, MPI_COMM_WORLD); \
    for (int i = 0; i < 3; i++) say("%g at %d, ", (double)in[i].value, in[i].at); \
    MPI_Allreduce(out, in, 3, basic, MPI_MINLOC, MPI_COMM_WORLD); \
    for (int i = 0; i < 3; i++) say("%g at %d, ", (double)in[i].value, in[i].at); \
    say(#basic "\n"); } while (0)
static void program(void) {
    REDUCE(int, MPI_2INT);
    REDUCE(short, MPI_SHORT_INT);
    REDUCE(long, MPI_LONG_INT);
    REDUCE(float, MPI_FLOAT_INT);
    REDUCE(double, MPI_DOUBLE_INT);
    REDUCE(long double, MPI_LONG_DOUBLE_INT);
}
