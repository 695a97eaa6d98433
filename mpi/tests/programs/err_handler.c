/* Ranks: 1. An error handler of the program is called, with the communicator and the code. */
#include "check.h"

static int calls;
static MPI_Comm called;
static void handle(MPI_Comm *comm, int *code, ...) {
    calls++;
    called = *comm;
    say("handler: %s\n", class_of(*code));
}
static void program(void) {
    MPI_Errhandler handler, got;
    MPI_Comm copy;
    int value = 0;
    MPI_Comm_create_errhandler(handle, &handler);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_set_errhandler(copy, handler);
    MPI_Send(&value, 1, MPI_INT, 99, 0, copy);
    say("calls %d, the communicator %d\n", calls, called == copy);
    MPI_Comm_get_errhandler(copy, &got);
    say("the same %d\n", got == handler);
    MPI_Errhandler_free(&got);
    MPI_Errhandler_free(&handler);
    say("null %d\n", handler == MPI_ERRHANDLER_NULL);
    MPI_Bcast(&value, 1, MPI_INT, 7, copy);
    MPI_Comm_call_errhandler(copy, MPI_ERR_OTHER);
    say("calls %d\n", calls);
    MPI_Comm child;
    MPI_Comm_dup(copy, &child);
    MPI_Send(&value, -1, MPI_INT, 0, 0, child);
    say("calls %d, the child %d\n", calls, called == child);
    MPI_Comm_free(&child);
    MPI_Comm_free(&copy);
}
