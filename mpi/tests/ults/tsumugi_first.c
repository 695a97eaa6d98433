/* tsumugi_start, tsumugi_run or acp_init makes the rank, and MPI_Init uses it. */
#include "both.h"
#include <acp.h>
#include <pthread.h>

static void begin_mpi(void)
{
    int provided, flag;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    CHECK(provided == MPI_THREAD_MULTIPLE);
    MPI_Is_thread_main(&flag);
    CHECK(flag);
}

static void *is_not_main(void *unused)
{
    int flag;
    MPI_Is_thread_main(&flag);
    CHECK(!flag);
    return unused;
}

static void *in_own_scheduler(void *unused)
{
    struct tsumugi_scheduler *scheduler;
    CHECK(tsumugi_scheduler_create(NULL, &scheduler) == TSUMUGI_OK);
    CHECK(tsumugi_scheduler_run(scheduler, is_not_main, NULL, NULL) == TSUMUGI_OK);
    tsumugi_scheduler_destroy(scheduler);
    return unused;
}

/* The first ULT of another scheduler is not the one that has called MPI_Init. */
static void others_are_not_main(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, in_own_scheduler, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

static void *in_run(struct tsumugi_job *job, void *value)
{
    begin_mpi();
    others_are_not_main();
    job_is_mpis(job);
    ults_call_mpi(NULL);
    /* The caller is a ULT itself. */
    shift((void *)(intptr_t)ULTS);
    MPI_Finalize();
    CHECK(tsumugi_barrier(job) == TSUMUGI_OK);
    return value;
}

static void *without_finalize(struct tsumugi_job *job, void *unused)
{
    begin_mpi();
    CHECK(tsumugi_barrier(job) == TSUMUGI_OK);
    return unused;
}

static void *refused_end(void *job)
{
    REFUSED(tsumugi_end(job), "tsumugi_end was called by a ULT of the rank that it ends");
    return NULL;
}

static void *refused_finalize(void *unused)
{
    CHECK(acp_finalize() == -1);
    CHECK(strstr(tsumugi_acp_error(), "acp_finalize was called by a ULT of the rank") != NULL);
    return unused;
}

static void in_ult(struct tsumugi_job *job, void *(*call)(void *))
{
    struct tsumugi_ult *ult;
    CHECK(tsumugi_spawn(tsumugi_workers(job), NULL, call, job, &ult) == TSUMUGI_OK);
    CHECK(tsumugi_join(ult, NULL) == TSUMUGI_OK);
}

static void by_start(void)
{
    struct tsumugi_job *job;
    CHECK(tsumugi_start(&job) == TSUMUGI_OK);
    begin_mpi();
    in_ult(job, is_not_main);
    others_are_not_main();
    job_is_mpis(job);
    ults_call_mpi(tsumugi_workers(job));
    /* The caller is a thread, and no ULT. */
    shift((void *)(intptr_t)ULTS);
    interfaces_are_apart(job);
    REFUSED(tsumugi_end(job), "MPI_Init uses this rank, so MPI_Finalize must be called before");
    finalize_with_freed_send();
    in_ult(job, refused_end);
    CHECK(tsumugi_barrier(job) == TSUMUGI_OK);
    CHECK(tsumugi_end(job) == TSUMUGI_OK);
}

static void by_acp(int *argc, char ***argv)
{
    struct tsumugi_job *job;
    CHECK(acp_init(argc, argv) == 0);
    begin_mpi();
    CHECK(tsumugi_start(&job) == TSUMUGI_OK);
    job_is_mpis(job);
    ults_call_mpi(tsumugi_workers(job));
    in_ult(job, refused_finalize);
    CHECK(acp_finalize() == -1);
    CHECK(strstr(tsumugi_acp_error(), "tsumugi_end must be called before") != NULL);
    CHECK(tsumugi_end(job) == TSUMUGI_OK);
    CHECK(acp_finalize() == -1);
    CHECK(strstr(tsumugi_acp_error(), "MPI_Finalize must be called before") != NULL);
    MPI_Finalize();
    CHECK(acp_sync() == 0 && acp_finalize() == 0);
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";
    if (strcmp(way, "start") == 0) {
        by_start();
    } else if (strcmp(way, "run") == 0) {
        void *value;
        CHECK(tsumugi_run(in_run, &argc, &value) == TSUMUGI_OK && value == &argc);
    } else if (strcmp(way, "unfinished") == 0) {
        REFUSED(tsumugi_run(without_finalize, NULL, NULL), "MPI_Finalize must be called before");
        /* The end of the process would report it, too. */
        puts("all is well");
        fflush(stdout);
        _Exit(0);
    } else {
        by_acp(&argc, &argv);
    }
    puts("all is well");
}
