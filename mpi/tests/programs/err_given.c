/* Ranks: 1. The error handlers of the standard. */
#include "check.h"

static void program(void) {
    MPI_Errhandler got;
    MPI_Comm copy;
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &got);
    say("fatal %d\n", got == MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &got);
    say("return %d\n", got == MPI_ERRORS_RETURN);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_get_errhandler(copy, &got);
    say("inherited %d\n", got == MPI_ERRORS_RETURN);
    MPI_Comm_free(&copy);
    result("call", MPI_Comm_call_errhandler(MPI_COMM_WORLD, MPI_ERR_OTHER));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ABORT);
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &got);
    say("abort %d\n", got == MPI_ERRORS_ABORT);
    got = MPI_ERRHANDLER_NULL;
    errors_return();
    result("free null", MPI_Errhandler_free(&got));
}
