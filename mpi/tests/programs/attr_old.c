/* Ranks: 1. The old names of attribute functions. */
#include "check.h"

static void program(void) {
    int key, value = 4, flag, *got;
    MPI_Comm comm, copy;
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Keyval_create(MPI_DUP_FN, MPI_NULL_DELETE_FN, &key, NULL);
    MPI_Attr_put(comm, key, &value);
    MPI_Comm_dup(comm, &copy);
    MPI_Attr_get(copy, key, &got, &flag);
    say("%d %d\n", flag, *got);
    MPI_Attr_delete(copy, key);
    MPI_Attr_get(copy, key, &got, &flag);
    say("%d\n", flag);
    MPI_Keyval_free(&key);
    say("%d\n", key == MPI_KEYVAL_INVALID);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&comm);
}
