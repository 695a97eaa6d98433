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

static void sleeps(void *in, void *inout, int *count, MPI_Datatype *type) {
    (void)in, (void)inout, (void)count, (void)type;
    tsumugi_sleep(1000000);
}

// 2 ranks, code 10: rank ...: MPI_Op_create: the function of an operation must not wait, and must not call MPI to communicate: a callback, handler or operation must not block (here: ...
static void operation_that_sleeps(void) {
    int one = 1, sum;
    MPI_Op op;
    MPI_Request request;
    MPI_Init(NULL, NULL);
    MPI_Op_create(sleeps, 1, &op);
    MPI_Iallreduce(&one, &sum, 1, MPI_INT, op, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Finalize();
}

static void *rest(void *unused) {
    tsumugi_sleep(1000000000000);
    return unused;
}

static void spawn_two(void) {
    struct tsumugi_ult *ults[2];
    for (int i = 0; i < 2; i++) tsumugi_spawn(NULL, NULL, rest, NULL, &ults[i]);
}

// 1 ranks, code 0, checked: rank 0: MPI_Finalize: ULTs that have not ended and are cut off (2): ...
static void ults_are_cut_off(void) {
    MPI_Init(NULL, NULL);
    spawn_two();
    MPI_Finalize();
}

// 1 ranks, code 0, checked: rank 0: MPI_Session_finalize: ULTs that have not ended and are cut off (2): ...
static void ults_of_a_session_are_cut_off(void) {
    MPI_Session session;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    spawn_two();
    MPI_Session_finalize(&session);
}

// 1 ranks, code 3: ...this process is local rank 0 already, or was it: a process is a rank at most once...
static void rank_after_finalize(void) {
    struct tsumugi_job *job;
    MPI_Init(NULL, NULL);
    MPI_Finalize();
    tsumugi_start(&job);
    fprintf(stderr, "%s\n", tsumugi_reason());
    exit(3);
}

int main(int argc, char **argv) {
    static const struct fault faults[] = {
        FAULT(finalize_before_end), FAULT(init_on_a_ult), FAULT(operation_that_sleeps),
        FAULT(ults_are_cut_off), FAULT(ults_of_a_session_are_cut_off),
        FAULT(rank_after_finalize),
    };
    RUN_FAULT(faults);
    return 0;
}
