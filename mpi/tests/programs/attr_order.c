/* Ranks: 1. Attributes of MPI_COMM_SELF are deleted in the reverse order at the end. */
#define OWN_MAIN
#include "check.h"

static int deleted(MPI_Comm comm, int key, void *value, void *extra) {
    int finalized;
    (void)comm;
    (void)key;
    (void)extra;
    MPI_Finalized(&finalized);
    printf("delete %s, finalized %d\n", (char *)value, finalized);
    return MPI_SUCCESS;
}

int main(void) {
    static char names[3][6] = {"one", "two", "three"};
    int key;
    MPI_Init(NULL, NULL);
    for (int i = 0; i < 3; i++) {
        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, deleted, &key, NULL);
        MPI_Comm_set_attr(MPI_COMM_SELF, key, names[i]);
    }
    printf("finalize\n");
    MPI_Finalize();
    printf("end\n");
    return 0;
}
