/* Ranks: 1. Attributes of datatypes. */
#include "check.h"

static int copied(MPI_Datatype type, int key, void *extra, void *value, void *out, int *flag) {
    (void)type;
    (void)key;
    (void)extra;
    *(int **)out = (int *)value + 1;
    *flag = 1;
    return MPI_SUCCESS;
}
static int deleted(MPI_Datatype type, int key, void *value, void *extra) {
    (void)type;
    (void)key;
    say("delete %d, %d\n", *(int *)value, *(int *)extra);
    return MPI_SUCCESS;
}
static void program(void) {
    int key, values[2] = {1, 2}, extra = 9, flag, *got;
    MPI_Datatype type, copy;
    MPI_Type_create_keyval(copied, deleted, &key, &extra);
    MPI_Type_contiguous(2, MPI_INT, &type);
    MPI_Type_set_attr(type, key, values);
    MPI_Type_dup(type, &copy);
    MPI_Type_get_attr(copy, key, &got, &flag);
    say("%d %d\n", flag, *got);
    MPI_Type_get_attr(type, key, &got, &flag);
    say("%d %d\n", flag, *got);
    MPI_Type_delete_attr(type, key);
    MPI_Type_get_attr(type, key, &got, &flag);
    say("%d\n", flag);
    MPI_Type_free(&copy);
    MPI_Type_set_attr(MPI_INT, key, values);
    MPI_Type_get_attr(MPI_INT, key, &got, &flag);
    say("%d %d\n", flag, *got);
    MPI_Type_delete_attr(MPI_INT, key);
    MPI_Type_free(&type);
    MPI_Type_free_keyval(&key);
    say("%d\n", key == MPI_KEYVAL_INVALID);
}
