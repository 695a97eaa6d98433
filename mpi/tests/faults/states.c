/* Calls before the begin and after the end of the job, and ends by MPI_Abort. */
#include "fault.h"

static int value;

static void begin(void) {
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
}

// 1 ranks, code 16: MPI_Comm_rank: called before MPI_Init (class MPI_ERR_OTHER); the job ends
static void before_init(void) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
}

// 1 ranks, code 16: rank 0: MPI_Send: called after MPI_Finalize (class MPI_ERR_OTHER); the job ends
static void after_finalize(void) {
    begin();
    MPI_Finalize();
    MPI_Send(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
}

// 1 ranks, code 16: rank 0: MPI_Init: called for the second time: a process is a rank once (class MPI_ERR_OTHER); the job ends
static void second_init(void) {
    begin();
    MPI_Init(NULL, NULL);
}

// 1 ranks, code 16: rank 0: MPI_Init: called after MPI_Finalize: a process is a rank once (class MPI_ERR_OTHER); the job ends
static void init_after_finalize(void) {
    begin();
    MPI_Finalize();
    MPI_Init(NULL, NULL);
}

// 1 ranks, code 16: rank 0: MPI_Finalize: called after MPI_Finalize (class MPI_ERR_OTHER); the job ends
static void second_finalize(void) {
    begin();
    MPI_Finalize();
    MPI_Finalize();
}

static void *finalize(void *argument) {
    MPI_Finalize();
    return argument;
}

// 1 ranks, code 16: rank 0: MPI_Finalize: called by another thread than MPI_Init (class MPI_ERR_OTHER); the job ends
static void finalize_by_another_thread(void) {
    int level;
    pthread_t thread;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level);
    pthread_create(&thread, NULL, finalize, NULL);
    pthread_join(thread, NULL);
}

// 3 ranks, code 42: rank 1: MPI_Abort(MPI_COMM_WORLD, 42)
//     tsumugi: rank 1 ... 42
static void abort_with_code(void) {
    begin();
    if (rank == 1) MPI_Abort(MPI_COMM_WORLD, 42);
    MPI_Recv(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

// 2 ranks, code 1: rank 0: MPI_Abort(MPI_COMM_WORLD, 0)
static void abort_with_zero(void) {
    begin();
    if (rank == 0) MPI_Abort(MPI_COMM_WORLD, 0);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    static const struct fault faults[] = {
        FAULT(before_init), FAULT(after_finalize), FAULT(second_init), FAULT(init_after_finalize),
        FAULT(second_finalize), FAULT(finalize_by_another_thread), FAULT(abort_with_code),
        FAULT(abort_with_zero),
    };
    RUN_FAULT(faults);
    return 0;
}
