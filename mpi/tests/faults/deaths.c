/* Ranks that end before the others. */
#include "fault.h"

static int value;

// 3 ranks, code 1: rank 1: the program exits without MPI_Finalize
//     tsumugi: rank 1 (pid ...) exited with code 0 before it had finished
static void exit_without_finalize(void) {
    if (rank == 1) exit(0);
    MPI_Recv(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

// 3 ranks, code 9: rank 1: the program exits without MPI_Finalize
//     tsumugi: rank 1 (pid ...) exited with code 9
static void exit_with_code(void) {
    if (rank == 1) exit(9);
    MPI_Barrier(MPI_COMM_WORLD);
}

// 3 ranks, code 137: tsumugi: rank 1 ...signal 9...
//     rank 0: MPI_Recv on MPI_COMM_WORLD: rank 1 has died (class MPI_ERR_PROC_ABORTED); the job ends
static void killed(void) {
    if (rank == 1) raise(SIGKILL);
    MPI_Recv(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

// 3 ranks, code 137: tsumugi: rank 1 ...signal 9...
static void killed_before_collective(void) {
    if (rank == 1) raise(SIGKILL);
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

// 3 ranks, code 137: rank 0: MPI_Recv returns MPI_ERR_PROC_ABORTED
static void killed_and_survived(void) {
    int class;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (rank == 1) raise(SIGKILL);
    MPI_Error_class(MPI_Recv(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE), &class);
    if (class == MPI_ERR_PROC_ABORTED) fprintf(stderr, "rank %d: MPI_Recv returns MPI_ERR_PROC_ABORTED\n", rank);
    exit(0);
}

// 3 ranks, code 139: tsumugi: rank 1 ...signal 11...
static void crash(void) {
    if (rank == 1) raise(SIGSEGV);
    MPI_Barrier(MPI_COMM_WORLD);
}

FAULTS(FAULT(exit_without_finalize), FAULT(exit_with_code), FAULT(killed),
       FAULT(killed_before_collective), FAULT(killed_and_survived), FAULT(crash))
