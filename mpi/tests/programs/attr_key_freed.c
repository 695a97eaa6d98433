/* Ranks: 1. A key that was freed is valid as long as there are attributes of it. */
#include "check.h"

static int value, extra;

static int copied(MPI_Comm comm, int key, void *with, void *from, void *into, int *flag) {
    (void)comm, (void)key;
    say("copied: %d\n", with == &extra && from == &value);
    *(void **)into = from;
    *flag = 1;
    return MPI_SUCCESS;
}

static int deleted(MPI_Comm comm, int key, void *of, void *with) {
    (void)comm, (void)key;
    say("deleted: %d\n", with == &extra && of == &value);
    return MPI_SUCCESS;
}

static void of_comms(void) {
    int key, kept, flag = -1;
    void *found = NULL;
    MPI_Comm copy;
    MPI_Comm_create_keyval(copied, deleted, &key, &extra);
    kept = key;
    MPI_Comm_set_attr(MPI_COMM_SELF, key, &value);
    MPI_Comm_free_keyval(&key);
    say("invalid: %d\n", key == MPI_KEYVAL_INVALID);
    result("get", MPI_Comm_get_attr(MPI_COMM_SELF, kept, &found, &flag));
    say("found: %d %d\n", flag, found == &value);
    MPI_Comm_dup(MPI_COMM_SELF, &copy);
    result("delete", MPI_Comm_delete_attr(MPI_COMM_SELF, kept));
    result("get", MPI_Comm_get_attr(MPI_COMM_SELF, kept, &found, &flag));
    say("found: %d\n", flag);
    result("set", MPI_Comm_set_attr(MPI_COMM_SELF, kept, &value));
    result("delete", MPI_Comm_delete_attr(MPI_COMM_SELF, kept));
    found = NULL;
    result("get from copy", MPI_Comm_get_attr(copy, kept, &found, &flag));
    say("found: %d %d\n", flag, found == &value);
    MPI_Comm_free(&copy);
}

static int type_deleted(MPI_Datatype type, int key, void *of, void *with) {
    (void)type, (void)key;
    say("deleted: %d\n", with == &extra && of == &value);
    return MPI_SUCCESS;
}

static void of_types(void) {
    int key, kept, flag = -1;
    void *found = NULL;
    MPI_Datatype type;
    MPI_Type_create_keyval(MPI_TYPE_DUP_FN, type_deleted, &key, &extra);
    kept = key;
    MPI_Type_dup(MPI_INT, &type);
    MPI_Type_set_attr(type, key, &value);
    MPI_Type_free_keyval(&key);
    result("get", MPI_Type_get_attr(type, kept, &found, &flag));
    say("found: %d %d\n", flag, found == &value);
    result("delete", MPI_Type_delete_attr(type, kept));
    MPI_Type_free(&type);
}

static void program(void) {
    errors_return();
    of_comms();
    of_types();
}
