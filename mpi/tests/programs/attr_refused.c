/* Ranks: 1. A delete function that fails keeps the attribute; a copy function that fails stops the copy. */
#include "check.h"

static int copied(MPI_Comm comm, int key, void *extra, void *value, void *out, int *flag) {
    (void)comm;
    (void)key;
    (void)value;
    (void)out;
    *flag = 0;
    return *(int *)extra ? MPI_ERR_OTHER : MPI_SUCCESS;
}
static int deleted(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm;
    (void)key;
    (void)value;
    return *(int *)extra ? MPI_ERR_OTHER : MPI_SUCCESS;
}
static void program(void) {
    int key, fails = 1, flag, *got;
    MPI_Comm comm, copy = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_create_keyval(copied, deleted, &key, &fails);
    MPI_Comm_set_attr(comm, key, &fails);
    say("delete fails %d\n", MPI_Comm_delete_attr(comm, key) != MPI_SUCCESS);
    MPI_Comm_get_attr(comm, key, &got, &flag);
    say("kept %d\n", flag);
    say("dup fails %d\n", MPI_Comm_dup(comm, &copy) != MPI_SUCCESS);
    fails = 0;
    MPI_Comm_dup(comm, &copy);
    MPI_Comm_get_attr(copy, key, &got, &flag);
    say("copied %d\n", flag);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&comm);
    MPI_Comm_free_keyval(&key);
}
