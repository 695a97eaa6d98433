/* Ranks: 1. Names of communicators. */
#include "check.h"

static void program(void) {
    char name[MPI_MAX_OBJECT_NAME];
    int length;
    MPI_Comm copy;
    MPI_Comm_get_name(MPI_COMM_WORLD, name, &length);
    say("'%s' %d\n", name, length);
    MPI_Comm_get_name(MPI_COMM_SELF, name, &length);
    say("'%s' %d\n", name, length);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_get_name(copy, name, &length);
    say("'%s' %d\n", name, length);
    MPI_Comm_set_name(copy, "ocean");
    MPI_Comm_get_name(copy, name, &length);
    say("'%s' %d\n", name, length);
    MPI_Comm_free(&copy);
    MPI_Comm_set_name(MPI_COMM_WORLD, "the world");
    MPI_Comm_get_name(MPI_COMM_WORLD, name, &length);
    say("'%s' %d\n", name, length);
}
