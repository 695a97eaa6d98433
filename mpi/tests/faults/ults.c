/* Mistakes of programs that call tsumugi, too. */
#include "fault.h"
#include <tsumugi.h>

// 2 ranks, code 16: rank 0: MPI_Finalize: tsumugi_start uses this rank, so tsumugi_end must be called before (class MPI_ERR_OTHER); the job ends
static void finalize_before_end(void) {
    struct tsumugi_job *job;
    MPI_Init(NULL, NULL);
    tsumugi_start(&job);
    MPI_Finalize();
}

// 1 ranks, code 16: MPI_Init: the calling thread cannot become a rank: it is a ULT of a scheduler that belongs to no job; call MPI_Init before, or tsumugi_start (class MPI_ERR_OTHER); the job ends
static void init_on_a_ult(void) {
    struct tsumugi_scheduler *scheduler;
    tsumugi_scheduler_create(NULL, &scheduler);
    tsumugi_scheduler_enter(scheduler);
    MPI_Init(NULL, NULL);
}

int main(int argc, char **argv) {
    static const struct fault faults[] = {FAULT(finalize_before_end), FAULT(init_on_a_ult)};
    RUN_FAULT(faults);
    return 0;
}
