/* What programs that call MPI and tsumugi share. */
#ifndef BOTH_H
#define BOTH_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tsumugi.h>

#define CHECK(condition)                                                          \
    do {                                                                          \
        if (!(condition)) {                                                       \
            fprintf(stderr, "%s:%d: not: %s (%s)\n", __FILE__, __LINE__,          \
                    #condition, tsumugi_reason());                                \
            abort();                                                              \
        }                                                                         \
    } while (0)

/* The call fails with JOB and a reason that contains the words. */
#define REFUSED(call, words)                                                      \
    do {                                                                          \
        CHECK((call) == TSUMUGI_ERROR_JOB);                                       \
        CHECK(strstr(tsumugi_reason(), words) != NULL);                           \
    } while (0)

enum { ULTS = 50 };

/* Each ULT sends a number to the next rank, and gets one of the rank before. */
static void *shift(void *arg)
{
    int tag = (int)(intptr_t)arg, rank, size, sent, got = -1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int before = (rank + size - 1) % size;
    sent = 1000 * rank + tag;
    MPI_Sendrecv(&sent, 1, MPI_INT, (rank + 1) % size, tag, &got, 1, MPI_INT, before, tag,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(got == 1000 * before + tag);
    return NULL;
}

/* ULTs of a scheduler (NULL: that of the caller) in calls of MPI. */
static inline void ults_call_mpi(const struct tsumugi_scheduler *scheduler)
{
    struct tsumugi_ult *ults[ULTS];
    for (intptr_t tag = 0; tag < ULTS; tag++)
        CHECK(tsumugi_spawn(scheduler, NULL, shift, (void *)tag, &ults[tag]) == TSUMUGI_OK);
    for (int tag = 0; tag < ULTS; tag++)
        CHECK(tsumugi_join(ults[tag], NULL) == TSUMUGI_OK);
}

/* The job is that of MPI, and its memory is that of its ranks. */
static inline void job_is_mpis(struct tsumugi_job *job)
{
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(tsumugi_rank(job) == (uint32_t)rank && tsumugi_size(job) == (uint32_t)size);
    struct tsumugi_region *counter;
    uint64_t all[16], old;
    CHECK(tsumugi_expose(job, 8, TSUMUGI_AGENT_CPU, &counter) == TSUMUGI_OK);
    CHECK(tsumugi_gather(job, tsumugi_region_addr(counter), all) == TSUMUGI_OK);
    CHECK(tsumugi_atomic8(job, TSUMUGI_ATOMIC_ADD, all[0], 1, &old) == TSUMUGI_OK);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(tsumugi_atomic8(job, TSUMUGI_ATOMIC_ADD, all[0], 0, &old) == TSUMUGI_OK);
    CHECK(old == (uint64_t)size);
    CHECK(tsumugi_barrier(job) == TSUMUGI_OK);
    CHECK(tsumugi_unregister(job, counter) == TSUMUGI_OK);
}

#endif
