/* Ranks: 1 2. The library gives the level of threads that the program wants. */
#define OWN_MAIN
#include "check.h"

int main(void) {
    int provided, level, is_main;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Query_thread(&level);
    MPI_Is_thread_main(&is_main);
    if (rank == 0) printf("multiple %d, the same %d, main %d\n", provided == MPI_THREAD_MULTIPLE, level == provided, is_main);
    MPI_Finalize();
    return 0;
}
