/* Ranks: 1. Datatypes by size, as pairs, and by the digits of numbers of Fortran. */
#include "check.h"

static void found(const char *what, MPI_Datatype type) {
    int bytes;
    if (type == MPI_DATATYPE_NULL) {
        say("%s: none\n", what);
        return;
    }
    MPI_Type_size(type, &bytes);
    say("%s: %d bytes\n", what, bytes);
}

static void pair(const char *what, MPI_Datatype value, MPI_Datatype index, MPI_Datatype expected) {
    MPI_Datatype type;
    MPI_Type_get_value_index(value, index, &type);
    say("%s: %d\n", what, type == expected);
}

static void program(void) {
    MPI_Datatype type, again;
    int values[3], addresses, integers, types, combiner;
    errors_return();
    for (int bytes = 1; bytes <= 8; bytes *= 2) {
        MPI_Type_match_size(MPI_TYPECLASS_INTEGER, bytes, &type);
        found("integer", type);
    }
    for (int bytes = 4; bytes <= 8; bytes *= 2) {
        MPI_Type_match_size(MPI_TYPECLASS_REAL, bytes, &type);
        found("real", type);
        MPI_Type_match_size(MPI_TYPECLASS_COMPLEX, 2 * bytes, &type);
        found("complex", type);
    }
    result("no size", MPI_Type_match_size(MPI_TYPECLASS_INTEGER, 3, &type));
    pair("float", MPI_FLOAT, MPI_INT, MPI_FLOAT_INT);
    pair("double", MPI_DOUBLE, MPI_INT, MPI_DOUBLE_INT);
    pair("long", MPI_LONG, MPI_INT, MPI_LONG_INT);
    pair("short", MPI_SHORT, MPI_INT, MPI_SHORT_INT);
    pair("int", MPI_INT, MPI_INT, MPI_2INT);
    pair("long double", MPI_LONG_DOUBLE, MPI_INT, MPI_LONG_DOUBLE_INT);
    pair("none", MPI_INT, MPI_DOUBLE, MPI_DATATYPE_NULL);
    MPI_Type_create_f90_real(6, 30, &type);
    found("f90 real", type);
    MPI_Type_create_f90_real(6, 30, &again);
    say("the same %d\n", type == again);
    MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
    say("%d %d %d, %d\n", integers, addresses, types, combiner == MPI_COMBINER_F90_REAL);
    MPI_Type_get_contents(type, integers, 0, 0, values, NULL, NULL);
    ints("digits", values, integers);
    MPI_Type_create_f90_complex(15, MPI_UNDEFINED, &type);
    found("f90 complex", type);
    MPI_Type_create_f90_integer(4, &type);
    found("f90 integer", type);
    MPI_Type_create_f90_integer(15, &type);
    found("f90 integer", type);
}
