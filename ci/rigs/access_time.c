/* Accesses of 8 bytes through the C interfaces, for counting instructions and for times: a
 * given number of operations of one kind on the word of the last rank.
 *
 *   access_time KIND COUNT     does COUNT operations, once; for counting
 *   access_time KIND           prints nanoseconds an operation, least and median of 101
 *                              samples of 10,000 each
 *
 * The kinds are put, get, fetch_add, copy, and in ACP's interface acp_copy, acp_add8 and
 * acp_query_address; with `ult_` before, an operation of tsumugi.h is called by a ULT. The
 * kind create_join starts and joins ULTs, one after another, on a scheduler without a job.
 * `ci/rigs/access_time.rs` has the operations of the Rust interface. */
#include <acp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <tsumugi.h>

static struct tsumugi_job *job;
static uint64_t to, own, word;
static acp_ga_t there, here;

static void *nothing(void *arg) { return arg; }

/* Callgrind counts between the entry of this function and its return. */
__attribute__((noinline)) static int measured(const char *kind, long count)
{
    int failed = 0;
    if (!strcmp(kind, "put"))
        for (long i = 0; i < count; i++) failed |= tsumugi_put(job, to, &word, 8);
    else if (!strcmp(kind, "get"))
        for (long i = 0; i < count; i++) failed |= tsumugi_get(job, &word, to, 8);
    else if (!strcmp(kind, "fetch_add"))
        for (long i = 0; i < count; i++)
            failed |= tsumugi_atomic8(job, TSUMUGI_ATOMIC_ADD, to, 1, &word);
    else if (!strcmp(kind, "copy"))
        for (long i = 0; i < count; i++) failed |= tsumugi_copy(job, to, own, 8);
    else if (!strcmp(kind, "acp_copy"))
        for (long i = 0; i < count; i++) {
            acp_handle_t handle = acp_copy(there, here, 8, ACP_HANDLE_NULL);
            failed |= handle == ACP_HANDLE_NULL;
            acp_complete(handle);
        }
    else if (!strcmp(kind, "acp_add8"))
        for (long i = 0; i < count; i++) {
            acp_handle_t handle = acp_add8(here, there, 1, ACP_HANDLE_NULL);
            failed |= handle == ACP_HANDLE_NULL;
            acp_complete(handle);
        }
    else if (!strcmp(kind, "acp_query_address"))
        for (long i = 0; i < count; i++) failed |= acp_query_address(here) == NULL;
    else if (!strcmp(kind, "create_join"))
        for (long i = 0; i < count; i++) {
            struct tsumugi_ult *ult;
            failed |= tsumugi_spawn(NULL, NULL, nothing, NULL, &ult);
            failed |= tsumugi_join(ult, NULL);
        }
    else
        failed = 1;
    return failed;
}

static int ascending(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

static int failed;

static void *run(void *arguments)
{
    char **argv = arguments;
    if (measured(argv[0], 1)) { /* The first access fetches the table of the rank. */
        fprintf(stderr, "access_time: '%s' is no kind, or it fails\n", argv[0]);
        failed = 1;
    } else if (argv[1]) {
        failed = measured(argv[0], atol(argv[1]));
    } else {
        enum { SAMPLES = 101, EACH = 10000 };
        static double samples[SAMPLES];
        for (int i = 0; i < SAMPLES; i++) {
            double start = now();
            failed |= measured(argv[0], EACH);
            samples[i] = (now() - start) / EACH;
        }
        qsort(samples, SAMPLES, sizeof samples[0], ascending);
        printf("c %s %.1f %.1f\n", argv[0], samples[0], samples[SAMPLES / 2]);
        fflush(stdout);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc < 2) return 2;
    if (!strcmp(argv[1], "create_join")) {
        struct tsumugi_config config = {.size = sizeof config, .workers = 1};
        struct tsumugi_scheduler *scheduler;
        if (tsumugi_scheduler_create(&config, &scheduler)) return 1;
        tsumugi_scheduler_run(scheduler, run, &argv[1], NULL);
        tsumugi_scheduler_destroy(scheduler);
        return failed;
    }
    if (!strncmp(argv[1], "acp_", 4)) {
        if (acp_init(&argc, &argv)) return 1;
        int last = acp_procs() - 1;
        there = acp_query_starter_ga(last);
        here = acp_query_starter_ga(acp_rank()) + 64;
        acp_sync();
        if (acp_rank() == 0) run(&argv[1]);
        acp_sync();
        acp_finalize();
        return failed;
    }
    if (tsumugi_start(&job)) return 1;
    struct tsumugi_region *region;
    uint64_t *all = calloc(tsumugi_size(job), sizeof *all);
    if (tsumugi_expose(job, 128, TSUMUGI_AGENT_CPU, &region)) return 1;
    own = tsumugi_region_addr(region) + 64;
    tsumugi_gather(job, own - 64, all);
    to = all[tsumugi_size(job) - 1];
    if (tsumugi_rank(job) == 0) {
        struct tsumugi_ult *ult;
        if (strncmp(argv[1], "ult_", 4)) {
            run(&argv[1]);
        } else {
            argv[1] += 4;
            if (tsumugi_spawn(tsumugi_workers(job), NULL, run, &argv[1], &ult)) return 1;
            tsumugi_join(ult, NULL);
        }
    }
    tsumugi_barrier(job);
    tsumugi_unregister(job, region);
    tsumugi_end(job);
    free(all);
    return failed;
}
