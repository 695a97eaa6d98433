/* Ranks: 1. Handlers, keys and codes that are made and freed again take no memory. */
#include "check.h"
#include <malloc.h>

enum { COUNT = 100000 };

static void handler(MPI_Comm *comm, int *code, ...) {
    (void)comm;
    (void)code;
}

static void errhandlers(void) {
    MPI_Errhandler made, found;
    MPI_Comm_create_errhandler(handler, &made);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, made);
    MPI_Errhandler_free(&made);
    MPI_Comm_get_errhandler(MPI_COMM_SELF, &found);
    MPI_Errhandler_free(&found);
}

static void comm_keys(void) {
    int key;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
    MPI_Comm_delete_attr(MPI_COMM_SELF, key);
    MPI_Comm_free_keyval(&key);
}

static void comm_keys_in_use(void) {
    int key, kept;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL);
    kept = key;
    MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
    MPI_Comm_free_keyval(&key);
    MPI_Comm_delete_attr(MPI_COMM_SELF, kept);
}

static void type_keys(void) {
    int key;
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &key, NULL);
    MPI_Type_set_attr(MPI_INT, key, NULL);
    MPI_Type_delete_attr(MPI_INT, key);
    MPI_Type_free_keyval(&key);
}

static void codes(void) {
    int class, code;
    MPI_Add_error_class(&class);
    MPI_Add_error_code(class, &code);
    MPI_Add_error_string(code, "a sentence of some words, which are more than a few");
    MPI_Remove_error_string(code);
    MPI_Remove_error_code(code);
    MPI_Remove_error_class(class);
}

static void rest(void) {
    MPI_Info info;
    MPI_Op op;
    MPI_Group group, part;
    MPI_Datatype type;
    MPI_Info_create(&info);
    MPI_Info_free(&info);
    MPI_Op_create((MPI_User_function *)handler, 1, &op);
    MPI_Op_free(&op);
    MPI_Comm_group(MPI_COMM_WORLD, &group);
    MPI_Group_incl(group, 1, &rank, &part);
    MPI_Group_free(&part);
    MPI_Group_free(&group);
    MPI_Type_contiguous(3, MPI_INT, &type);
    MPI_Type_free(&type);
}

/* Says whether many times take the memory of a few. */
static void many(const char *what, void (*once)(void)) {
    for (int i = 0; i < 1000; i++) once();
    size_t before = mallinfo2().uordblks;
    for (int i = 0; i < COUNT; i++) once();
    long grown = (long)(mallinfo2().uordblks - before);
    say("%s: %s\n", what, grown < 100000 ? "the same memory" : "more memory");
}

static void program(void) {
    many("error handlers", errhandlers);
    many("keys of communicators", comm_keys);
    many("keys that are freed in use", comm_keys_in_use);
    many("keys of datatypes", type_keys);
    many("error codes", codes);
    many("others", rest);
}
