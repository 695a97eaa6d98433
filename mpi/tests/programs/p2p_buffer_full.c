/* Ranks: 1. Errors of buffered messages: no buffer, too small, attached twice. */
#include "check.h"

static void program(void) {
    static char buffer[600], other[100];
    int values[200] = {0}, length;
    void *detached;
    errors_return();
    result("without", MPI_Bsend(values, 1, MPI_INT, 0, 0, MPI_COMM_WORLD));
    result("attach", MPI_Buffer_attach(buffer, sizeof buffer));
    say("twice: refused %d\n", MPI_Buffer_attach(other, sizeof other) != MPI_SUCCESS);
    result("long", MPI_Bsend(values, 200, MPI_INT, 0, 0, MPI_COMM_WORLD));
    result("detach", MPI_Buffer_detach(&detached, &length));
    say("same: %d, length %d\n", detached == buffer, length);
}
