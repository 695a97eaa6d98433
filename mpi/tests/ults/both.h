/* What programs that call MPI and tsumugi share. */
#ifndef BOTH_H
#define BOTH_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tsumugi.h>
#include <unistd.h>

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

/* The first look at a datatype may be that of a ULT, which has a short stack. */
static void *look_at_datatype(void *unused)
{
    int bytes;
    MPI_Type_size(MPI_DOUBLE, &bytes);
    CHECK(bytes == 8);
    return unused;
}

/* ULTs of a scheduler (NULL: that of the caller) in calls of MPI. */
static inline void ults_call_mpi(const struct tsumugi_scheduler *scheduler)
{
    struct tsumugi_ult *ults[ULTS];
    CHECK(tsumugi_spawn(scheduler, NULL, look_at_datatype, NULL, &ults[0]) == TSUMUGI_OK);
    CHECK(tsumugi_join(ults[0], NULL) == TSUMUGI_OK);
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

/* Messages and collectives of MPI_COMM_WORLD are apart from those of the job. */
static inline void interfaces_are_apart(struct tsumugi_job *job)
{
    int rank, size, of_mpi = 1, of_job = 100, got, sums[2];
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    struct tsumugi_comm *comm;
    struct tsumugi_request *sent;
    struct tsumugi_received received;
    MPI_Request request;
    CHECK(tsumugi_comm_open(job, &comm) == TSUMUGI_OK);
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    CHECK(tsumugi_isend(comm, next, 5, &of_job, sizeof of_job, &sent) == TSUMUGI_OK);
    MPI_Isend(&of_mpi, 1, MPI_INT, next, 5, MPI_COMM_WORLD, &request);
    MPI_Recv(&got, 1, MPI_INT, before, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(got == of_mpi);
    CHECK(tsumugi_recv(comm, before, 5, &got, sizeof got, &received) == TSUMUGI_OK);
    CHECK(got == of_job);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(tsumugi_request_wait(sent, NULL) == TSUMUGI_OK);
    CHECK(tsumugi_comm_close(comm) == TSUMUGI_OK);

    struct tsumugi_group *group;
    struct tsumugi_reduction sum = {
        .size = sizeof sum, .what = TSUMUGI_SUM, .element = TSUMUGI_I32};
    CHECK(tsumugi_group_world(job, &group) == TSUMUGI_OK);
    for (int turn = 0; turn < 2; turn++) {
        if ((turn + rank) % 2 == 0)
            MPI_Iallreduce(&of_mpi, &sums[0], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
        else
            CHECK(tsumugi_group_allreduce(group, &of_job, &sums[1], 1, &sum, &sent) ==
                  TSUMUGI_OK);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(tsumugi_request_wait(sent, NULL) == TSUMUGI_OK);
    CHECK(sums[0] == size && sums[1] == 100 * size);
    CHECK(tsumugi_group_close(group) == TSUMUGI_OK);
}

/* A send whose handle has gone has ended when MPI_Finalize returns: the buffer is the program's
 * again. */
static inline void finalize_with_freed_send(void)
{
    enum { NUMBERS = 1 << 18 };
    int *numbers = malloc(NUMBERS * sizeof *numbers), rank, size;
    MPI_Request request;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size > 1 && rank == 0) {
        for (int at = 0; at < NUMBERS; at++)
            numbers[at] = at;
        MPI_Isend(numbers, NUMBERS, MPI_INT, size - 1, 99, MPI_COMM_WORLD, &request);
        MPI_Request_free(&request);
    } else if (size > 1 && rank == size - 1) {
        usleep(200000);
        MPI_Recv(numbers, NUMBERS, MPI_INT, 0, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int at = 0; at < NUMBERS; at++)
            CHECK(numbers[at] == at);
    }
    CHECK(MPI_Finalize() == MPI_SUCCESS);
    memset(numbers, 0xff, NUMBERS * sizeof *numbers);
    free(numbers);
}

#endif
