/* Ranks: 1. Classes, codes and texts of errors that the program adds. */
#include "check.h"

static void program(void) {
    int class, code, other, got, length, flag, *last;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Add_error_class(&class);
    MPI_Add_error_code(class, &code);
    MPI_Add_error_code(MPI_ERR_ARG, &other);
    say("above %d\n", class > MPI_ERR_LASTCODE);
    MPI_Add_error_string(class, "too cold");
    MPI_Add_error_string(code, "far too cold");
    MPI_Add_error_string(other, "odd");
    MPI_Error_class(code, &got);
    say("class %d\n", got == class);
    MPI_Error_class(class, &got);
    say("class %d\n", got == class);
    MPI_Error_class(other, &got);
    say("class %d\n", got == MPI_ERR_ARG);
    MPI_Error_string(class, text, &length);
    say("%s %d\n", text, length);
    MPI_Error_string(code, text, &length);
    say("%s %d\n", text, length);
    MPI_Error_string(other, text, &length);
    say("%s %d\n", text, length);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last, &flag);
    say("last used %d\n", *last >= class);
    MPI_Error_class(MPI_ERR_TRUNCATE, &got);
    say("given class %d\n", got == MPI_ERR_TRUNCATE);
    MPI_Error_string(MPI_ERR_TRUNCATE, text, &length);
    say("text %d\n", length > 0 && (int)strlen(text) == length);
    MPI_Error_class(MPI_SUCCESS, &got);
    say("success %d\n", got == MPI_SUCCESS);
}
