/* Ranks: 1. Codes of the program that are removed. */
#include "check.h"

static void program(void) {
    int class, code, length;
    char text[MPI_MAX_ERROR_STRING];
    errors_return();
    MPI_Add_error_class(&class);
    MPI_Add_error_code(class, &code);
    MPI_Add_error_string(code, "a code");
    say("in use %d\n", MPI_Remove_error_code(code) != MPI_SUCCESS);
    say("in use %d\n", MPI_Remove_error_class(class) != MPI_SUCCESS);
    result("string", MPI_Remove_error_string(code));
    MPI_Error_string(code, text, &length);
    say("length %d\n", length);
    result("code", MPI_Remove_error_code(code));
    result("class", MPI_Remove_error_class(class));
    say("gone %d\n", MPI_Remove_error_code(code) != MPI_SUCCESS);
}
