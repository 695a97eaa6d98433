/* Ranks: 2. A handler lasts while a communicator has it, and each handle of it is freed. */
#include "check.h"

static int calls;

static void handler(MPI_Comm *comm, int *code, ...) {
    (void)comm;
    say("called for %s\n", class_of(*code));
    calls++;
}

static void fail(MPI_Comm comm) {
    int value = 0;
    MPI_Send(&value, 1, MPI_INT, 77, 0, comm);
}

static void program(void) {
    MPI_Errhandler made, found, again;
    MPI_Comm copy, part;
    errors_return();
    MPI_Comm_create_errhandler(handler, &made);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_set_errhandler(copy, made);
    MPI_Errhandler_free(&made);
    say("null %d\n", made == MPI_ERRHANDLER_NULL);
    fail(copy);
    // A handle of a handler whose first one was freed.
    MPI_Comm_get_errhandler(copy, &found);
    MPI_Comm_get_errhandler(copy, &again);
    say("the same %d\n", found == again);
    MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN);
    result("returned", MPI_Send(NULL, 0, MPI_INT, 77, 0, copy));
    MPI_Errhandler_free(&found);
    MPI_Comm_set_errhandler(copy, again);
    MPI_Errhandler_free(&again);
    // New communicators have the handler of the one of which they are made.
    MPI_Comm_split(copy, 0, 0, &part);
    MPI_Comm_free(&copy);
    fail(part);
    MPI_Comm_free(&part);
    say("calls %d\n", calls);
}
