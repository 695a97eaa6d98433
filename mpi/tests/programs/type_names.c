/* Ranks: 1. Names of datatypes: those given by the standard, and those of the program. */
#include "check.h"

static void program(void) {
    MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE, MPI_CHAR, MPI_BYTE, MPI_PACKED, MPI_LONG_LONG, MPI_INT64_T,
                            MPI_C_BOOL, MPI_C_DOUBLE_COMPLEX, MPI_DOUBLE_INT, MPI_2INT, MPI_AINT, MPI_UNSIGNED, MPI_WCHAR};
    char name[MPI_MAX_OBJECT_NAME];
    int length;
    MPI_Datatype own, copy;
    for (int i = 0; i < LENGTH(types); i++) {
        MPI_Type_get_name(types[i], name, &length);
        say("%s %d\n", name, length);
    }
    MPI_Type_contiguous(3, MPI_INT, &own);
    MPI_Type_get_name(own, name, &length);
    say("'%s' %d\n", name, length);
    MPI_Type_set_name(own, "three ints");
    MPI_Type_get_name(own, name, &length);
    say("'%s' %d\n", name, length);
    MPI_Type_dup(own, &copy);
    MPI_Type_get_name(copy, name, &length);
    say("copy '%s' %d\n", name, length);
    MPI_Type_free(&own);
    MPI_Type_free(&copy);
}
