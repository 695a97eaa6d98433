/* Ranks: 1. The info of the start, and an info of the arguments of the program. */
#include "check.h"

static void program(void) {
    MPI_Info info;
    char value[100];
    int flag, count;
    MPI_Info_get(MPI_INFO_ENV, "no such key", 99, value, &flag);
    say("flag %d\n", flag);
    MPI_Info_create_env(0, NULL, &info);
    MPI_Info_get_nkeys(info, &count);
    say("keys %d\n", count >= 0);
    MPI_Info_free(&info);
}
