/* Ranks: 2. Parts by what info names. */
#include "check.h"

static void split(const char *what, int kind, MPI_Info info) {
    int count;
    MPI_Comm comm;
    MPI_Comm_split_type(MPI_COMM_WORLD, kind, rank, info, &comm);
    if (comm == MPI_COMM_NULL) {
        say("%s: null\n", what);
        return;
    }
    MPI_Comm_size(comm, &count);
    say("%s: %d\n", what, count);
    MPI_Comm_free(&comm);
}

static void program(void) {
    MPI_Info info;
    split("no info", MPI_COMM_TYPE_HW_GUIDED, MPI_INFO_NULL);
    MPI_Info_create(&info);
    split("empty", MPI_COMM_TYPE_RESOURCE_GUIDED, info);
    MPI_Info_set(info, "mpi_hw_resource_type", "no such thing");
    split("unknown", MPI_COMM_TYPE_HW_GUIDED, info);
    MPI_Info_set(info, "mpi_hw_resource_type", "mpi_shared_memory");
    split("shared memory", MPI_COMM_TYPE_HW_GUIDED, info);
    split("shared memory", MPI_COMM_TYPE_RESOURCE_GUIDED, info);
    MPI_Info_free(&info);
}
