/* Ranks: 1. The class of the error for each wrong argument of an info object. */
#include "check.h"

static void program(void) {
    MPI_Info info;
    char long_key[MPI_MAX_INFO_KEY + 10], key[MPI_MAX_INFO_KEY];
    int count;
    errors_return();
    memset(long_key, 'k', sizeof long_key);
    long_key[sizeof long_key - 1] = 0;
    MPI_Info_create(&info);
    result("delete", MPI_Info_delete(info, "none"));
    result("long", MPI_Info_set(info, long_key, "value"));
    result("empty", MPI_Info_set(info, "", "value"));
    result("nth", MPI_Info_get_nthkey(info, 3, key));
    say("null: refused %d\n", MPI_Info_get_nkeys(MPI_INFO_NULL, &count) != MPI_SUCCESS);
    MPI_Info_free(&info);
    say("free: refused %d\n", MPI_Info_free(&info) != MPI_SUCCESS);
}
