/* Ranks: 1. Keys and values of info objects, in the order in which they were set. */
#include "check.h"

static void program(void) {
    MPI_Info info, copy;
    char key[MPI_MAX_INFO_KEY], value[100];
    int count, flag, length;
    MPI_Info_create(&info);
    MPI_Info_get_nkeys(info, &count);
    say("%d keys\n", count);
    MPI_Info_set(info, "colour", "red");
    MPI_Info_set(info, "size", "large");
    MPI_Info_set(info, "age", "4");
    MPI_Info_set(info, "size", "small and round");
    MPI_Info_get_nkeys(info, &count);
    for (int i = 0; i < count; i++) {
        MPI_Info_get_nthkey(info, i, key);
        MPI_Info_get_valuelen(info, key, &length, &flag);
        MPI_Info_get(info, key, 99, value, &flag);
        say("%s = %s, %d %d\n", key, value, length, flag);
    }
    length = 6;
    MPI_Info_get_string(info, "size", &length, value, &flag);
    say("cut '%s', needs %d, flag %d\n", value, length, flag);
    length = 0;
    MPI_Info_get_string(info, "size", &length, value, &flag);
    say("needs %d\n", length);
    MPI_Info_get(info, "weight", 99, value, &flag);
    say("weight %d\n", flag);
    MPI_Info_get_valuelen(info, "weight", &length, &flag);
    say("weight %d\n", flag);
    MPI_Info_dup(info, &copy);
    MPI_Info_delete(info, "colour");
    MPI_Info_get_nkeys(info, &count);
    say("%d keys\n", count);
    MPI_Info_get_nthkey(info, 0, key);
    say("first %s\n", key);
    MPI_Info_free(&info);
    say("null %d\n", info == MPI_INFO_NULL);
    MPI_Info_get_nkeys(copy, &count);
    say("%d keys of the copy\n", count);
    MPI_Info_free(&copy);
}
