/* Ranks: 1 2. Initialized and Finalized before, during and after the job. */
#define OWN_MAIN
#include "check.h"

static void show(const char *when) {
    int initialized, finalized;
    MPI_Initialized(&initialized);
    MPI_Finalized(&finalized);
    say("%s: %d %d\n", when, initialized, finalized);
}

int main(int argc, char **argv) {
    show("before");
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    show("during");
    MPI_Finalize();
    show("after");
    int version, subversion;
    say("version %d\n", MPI_Get_version(&version, &subversion) == MPI_SUCCESS);
    if (rank == 0) print_text(0, said);
    return 0;
}
