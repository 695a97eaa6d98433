/* Ranks: 1. A program of one thread gets at least what it wants. */
#define OWN_MAIN
#include "check.h"

int main(void) {
    int provided, is_main;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
    MPI_Is_thread_main(&is_main);
    printf("enough %d, main %d\n", provided >= MPI_THREAD_FUNNELED, is_main);
    printf("in order %d\n", MPI_THREAD_SINGLE < MPI_THREAD_FUNNELED && MPI_THREAD_FUNNELED < MPI_THREAD_SERIALIZED && MPI_THREAD_SERIALIZED < MPI_THREAD_MULTIPLE);
    MPI_Finalize();
    return 0;
}
