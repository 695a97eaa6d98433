/* Ranks: 2. Attributes of communicators: set, read, copied, deleted, in their order. */
#include "check.h"

static int copied(MPI_Comm comm, int key, void *extra, void *value, void *out, int *flag) {
    (void)comm;
    (void)key;
    say("copy %s %d\n", (const char *)extra, *(int *)value);
    *(void **)out = value;
    *flag = 1;
    return MPI_SUCCESS;
}
static int deleted(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm;
    (void)key;
    say("delete %s %d\n", (const char *)extra, *(int *)value);
    return MPI_SUCCESS;
}
static void program(void) {
    int keys[3], values[4] = {10, 20, 30, 40}, flag, *got = NULL;
    char names[3][2] = {"a", "b", "c"};
    MPI_Comm comm, copy;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_create_keyval(copied, deleted, keys, names[0]);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, deleted, keys + 1, names[1]);
    MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, keys + 2, names[2]);
    MPI_Comm_get_attr(comm, keys[0], &got, &flag);
    say("before %d\n", flag);
    for (int i = 0; i < 3; i++) MPI_Comm_set_attr(comm, keys[i], values + i);
    MPI_Comm_get_attr(comm, keys[0], &got, &flag);
    say("after %d %d\n", flag, *got);
    MPI_Comm_set_attr(comm, keys[0], values + 3);
    MPI_Comm_dup(comm, &copy);
    for (int i = 0; i < 3; i++) {
        MPI_Comm_get_attr(copy, keys[i], &got, &flag);
        say("copy has %d: %d\n", flag, flag ? *got : 0);
    }
    MPI_Comm_delete_attr(comm, keys[1]);
    MPI_Comm_get_attr(comm, keys[1], &got, &flag);
    say("deleted: %d\n", flag);
    say("free copy\n");
    MPI_Comm_free(&copy);
    for (int i = 0; i < 3; i++) {
        int key = keys[i];
        MPI_Comm_free_keyval(&key);
        say("invalid %d\n", key == MPI_KEYVAL_INVALID);
    }
    say("free comm\n");
    MPI_Comm_free(&comm);
}
