/* MPI_Init makes the rank, and tsumugi_start uses it. */
#include "both.h"
#include <acp.h>

static void *none(struct tsumugi_job *job, void *arg)
{
    (void)job;
    return arg;
}

static void *is_main(void *unused)
{
    int flag;
    (void)unused;
    MPI_Is_thread_main(&flag);
    return (void *)(intptr_t)flag;
}

/* The error string of a ULT is that of its own last error. */
static void *own_sentence(void *arg)
{
    int peer = (int)(intptr_t)arg, length;
    char wanted[32], text[MPI_MAX_ERROR_STRING];
    CHECK(MPI_Send(NULL, 0, MPI_INT, peer, 0, MPI_COMM_WORLD) == MPI_ERR_RANK);
    tsumugi_sleep(20000000);
    MPI_Error_string(MPI_ERR_RANK, text, &length);
    snprintf(wanted, sizeof wanted, "rank %d is not", peer);
    CHECK(strstr(text, wanted) != NULL);
    return arg;
}

static void sentences_of_ults(void)
{
    struct tsumugi_ult *ults[10];
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int at = 0; at < 10; at++)
        CHECK(tsumugi_spawn(NULL, NULL, own_sentence, (void *)(intptr_t)(1000 + at), &ults[at]) ==
              TSUMUGI_OK);
    for (int at = 0; at < 10; at++)
        CHECK(tsumugi_join(ults[at], NULL) == TSUMUGI_OK);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
    int provided, flag;
    void *of_child;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    CHECK(provided == MPI_THREAD_MULTIPLE);
    ults_call_mpi(NULL);
    MPI_Is_thread_main(&flag);
    CHECK(flag);
    struct tsumugi_ult *child;
    CHECK(tsumugi_spawn(NULL, NULL, is_main, NULL, &child) == TSUMUGI_OK);
    CHECK(tsumugi_join(child, &of_child) == TSUMUGI_OK && of_child == NULL);

    sentences_of_ults();

    struct tsumugi_job *job, *second;
    REFUSED(tsumugi_run(none, NULL, NULL), "MPI_Init has made this process a rank already");
    CHECK(acp_init(&argc, &argv) == -1);
    CHECK(strstr(tsumugi_acp_error(), "MPI_Init has made") != NULL);
    CHECK(tsumugi_start(&job) == TSUMUGI_OK);
    REFUSED(tsumugi_start(&second), "at most once");
    job_is_mpis(job);
    interfaces_are_apart(job);
    ults_call_mpi(tsumugi_workers(job));
    /* An error changes nothing. */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK(MPI_Finalize() != MPI_SUCCESS);
    MPI_Finalized(&flag);
    CHECK(!flag);
    char memory[64];
    struct tsumugi_region *region;
    CHECK(tsumugi_register(job, memory, sizeof memory, &region) == TSUMUGI_ERROR_REACH);
    CHECK(strstr(tsumugi_reason(), "tsumugi_expose") != NULL);
    CHECK(tsumugi_end(job) == TSUMUGI_OK);
    CHECK(tsumugi_start(&job) == TSUMUGI_OK);
    CHECK(tsumugi_barrier(job) == TSUMUGI_OK && tsumugi_end(job) == TSUMUGI_OK);
    /* The rank goes on. */
    ults_call_mpi(NULL);
    MPI_Finalize();
    puts("all is well");
}
