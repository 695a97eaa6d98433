/* Ranks: 1. The class of the error for each wrong argument of an attribute. */
#include "check.h"

static void program(void) {
    int flag, value, key, *got;
    errors_return();
    result("get", MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_KEYVAL_INVALID, &got, &flag));
    result("set", MPI_Comm_set_attr(MPI_COMM_WORLD, MPI_KEYVAL_INVALID, &value));
    say("set tags: refused %d\n", MPI_Comm_set_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value) != MPI_SUCCESS);
    key = MPI_KEYVAL_INVALID;
    result("free", MPI_Comm_free_keyval(&key));
    result("delete", MPI_Comm_delete_attr(MPI_COMM_WORLD, MPI_KEYVAL_INVALID));
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &key, NULL);
    say("of a datatype: refused %d\n", MPI_Comm_set_attr(MPI_COMM_WORLD, key, &value) != MPI_SUCCESS);
    MPI_Type_free_keyval(&key);
}
