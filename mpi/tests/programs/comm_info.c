/* Ranks: 1 2. The info of a communicator. */
#include "check.h"

static void program(void) {
    MPI_Info info, got;
    MPI_Comm copy;
    char value[50];
    int flag;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_assert_no_any_tag", "false");
    MPI_Comm_set_info(copy, info);
    MPI_Comm_get_info(copy, &got);
    say("null %d\n", got == MPI_INFO_NULL);
    MPI_Info_get(got, "no such key", 49, value, &flag);
    say("flag %d\n", flag);
    MPI_Info_free(&got);
    MPI_Info_free(&info);
    MPI_Comm_free(&copy);
}
