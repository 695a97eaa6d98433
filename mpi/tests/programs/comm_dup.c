/* Ranks: 1 2 3. Duplicates of communicators, with and without info, and nonblocking. */
#include "check.h"

static void program(void) {
    MPI_Comm copies[4];
    MPI_Request requests[2];
    MPI_Info info;
    int value;
    MPI_Info_create(&info);
    MPI_Comm_dup(MPI_COMM_WORLD, copies);
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, copies + 1);
    MPI_Comm_idup(MPI_COMM_WORLD, copies + 2, requests);
    MPI_Comm_idup_with_info(copies[0], info, copies + 3, requests + 1);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Info_free(&info);
    for (int i = 0; i < 4; i++) {
        int of, at, answer;
        MPI_Comm_size(copies[i], &of);
        MPI_Comm_rank(copies[i], &at);
        MPI_Comm_compare(MPI_COMM_WORLD, copies[i], &answer);
        value = rank + i;
        MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, copies[i]);
        say("%d of %d, congruent %d, sum %d\n", at, of, answer == MPI_CONGRUENT, value);
        MPI_Comm_free(copies + i);
        say("null %d\n", copies[i] == MPI_COMM_NULL);
    }
}
