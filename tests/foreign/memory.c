/* The memory of all ranks from C: a job, global addresses, puts, gets, atomics,
 * operations that end later, and ULTs that do them. tests/capi.rs here compiles
 * and runs it, as several ranks. */

#include "check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS_MAX = 16, ULTS = 100, WORDS = 1000, PAGES = 64, PAGE_WORDS = 512 };

static struct tsumugi_job *job;
static uint32_t rank, size, next;
static uint64_t data[WORDS];

static void *play(struct tsumugi_job *of, void *value);

/* The next rank's address of the object that this rank has at `own`. Collective. */
static tsumugi_addr next_one(tsumugi_addr own)
{
    uint64_t all[RANKS_MAX];
    OK(tsumugi_gather(job, own, all));
    return all[next];
}

static void every_access_reaches_the_next_rank(int agent)
{
    struct tsumugi_region *region;
    OK(tsumugi_expose(job, 800, agent, &region));
    tsumugi_addr own = tsumugi_region_addr(region), there = next_one(own), at;
    char *memory = tsumugi_region_memory(region);
    uint32_t whose, old4, four = 0;
    uint64_t old, word = 5, back = 0;
    OK(tsumugi_addr_rank(job, there, &whose));
    CHECK(whose == next && own != TSUMUGI_ADDR_NULL);
    /* Words. */
    OK(tsumugi_put(job, there, &word, 8));
    OK(tsumugi_get(job, &back, there, 8));
    CHECK(back == 5);
    OK(tsumugi_atomic8(job, TSUMUGI_ATOMIC_ADD, there, 2, &old));
    CHECK(old == 5);
    OK(tsumugi_atomic8(job, TSUMUGI_ATOMIC_AND, there, 6, &old));
    CHECK(old == 7);
    OK(tsumugi_atomic8(job, TSUMUGI_ATOMIC_OR, there, 8, NULL));
    OK(tsumugi_atomic8(job, TSUMUGI_ATOMIC_XOR, there, 1, &old));
    CHECK(old == 14);
    OK(tsumugi_atomic8(job, TSUMUGI_ATOMIC_SWAP, there, 9, &old));
    CHECK(old == 15);
    OK(tsumugi_compare_swap8(job, there, 8, 1, &old));
    CHECK(old == 9);
    OK(tsumugi_compare_swap8(job, there, 9, 1, &old));
    CHECK(old == 9);
    OK(tsumugi_addr_add(job, there, 12, &at));
    OK(tsumugi_atomic4(job, TSUMUGI_ATOMIC_ADD, at, UINT32_MAX, &old4));
    CHECK(old4 == 0);
    OK(tsumugi_compare_swap4(job, at, UINT32_MAX, 3, &old4));
    CHECK(old4 == UINT32_MAX);
    OK(tsumugi_get(job, &four, at, 4));
    CHECK(four == 3);
    /* Bytes of any number, at any place. */
    char bytes[100], found[100];
    for (int n = 0; n < 100; n++) bytes[n] = (char)(n + (int)rank);
    size_t lengths[] = {0, 1, 2, 3, 4, 7, 8, 100};
    for (int n = 0; n < 8; n++) {
        for (int offset = 0; offset < 3; offset++) {
            OK(tsumugi_addr_add(job, there, 400 + offset, &at));
            OK(tsumugi_put(job, at, bytes, lengths[n]));
            memset(found, 77, sizeof found);
            OK(tsumugi_get(job, found, at, lengths[n]));
            CHECK(memcmp(found, bytes, lengths[n]) == 0);
        }
    }
    OK(tsumugi_barrier(job));
    /* Access to the own memory, which the previous rank has written. */
    OK(tsumugi_addr_add(job, own, 402, &at));
    OK(tsumugi_get(job, found, at, 100));
    CHECK(found[99] == (char)(99 + (int)((rank + size - 1) % size)));
    CHECK(agent == TSUMUGI_AGENT_DEVICE || memcmp(memory + 402, found, 100) == 0);
    /* A copy from the next rank to this one. */
    OK(tsumugi_barrier(job));
    OK(tsumugi_put(job, own, &(uint64_t){rank}, 8));
    OK(tsumugi_barrier(job));
    OK(tsumugi_addr_add(job, own, 8, &at));
    OK(tsumugi_copy(job, at, there, 8));
    OK(tsumugi_get(job, &back, at, 8));
    CHECK(back == next);
    /* Bad addresses and bad arguments are refused. */
    tsumugi_addr beyond;
    OK(tsumugi_addr_add(job, there, 800, &beyond));
    ANSWERS(TSUMUGI_ERROR_RANGE, tsumugi_get(job, &back, beyond, 8));
    CHECK(strstr(tsumugi_reason(), "8 bytes") != NULL);
    ANSWERS(TSUMUGI_ERROR_RANGE, tsumugi_addr_add(job, there, INT64_MAX, &at));
    ANSWERS(TSUMUGI_ERROR_NOWHERE, tsumugi_get(job, &back, TSUMUGI_ADDR_NULL, 8));
    ANSWERS(TSUMUGI_ERROR_NOWHERE, tsumugi_addr_rank(job, TSUMUGI_ADDR_NULL, &whose));
    ANSWERS(TSUMUGI_ERROR_UNALIGNED, tsumugi_atomic8(job, 0, there + 4, 1, NULL));
    ANSWERS(TSUMUGI_ERROR_FLAGS, tsumugi_atomic8(job, 99, there, 1, NULL));
    ANSWERS(TSUMUGI_ERROR_FLAGS, tsumugi_expose(job, 8, 99, &region));
    ANSWERS(TSUMUGI_ERROR_NULL, tsumugi_get(NULL, &back, there, 8));
    ANSWERS(TSUMUGI_ERROR_NULL, tsumugi_get(job, NULL, there, 8));
    ANSWERS(TSUMUGI_ERROR_NULL, tsumugi_put(job, there, NULL, 8));
    OK(tsumugi_barrier(job));
    OK(tsumugi_unregister(job, region));
    OK(tsumugi_barrier(job));
    ANSWERS(TSUMUGI_ERROR_STALE, tsumugi_put(job, there, &word, 8));
    OK(tsumugi_barrier(job));
}

/* A get or a put may overlap its own end, and what is refused changes and reads nothing. */
static void ends_may_overlap(void)
{
    struct tsumugi_region *region;
    OK(tsumugi_expose(job, 304, TSUMUGI_AGENT_CPU, &region));
    tsumugi_addr own = tsumugi_region_addr(region), there = next_one(own);
    unsigned char *memory = tsumugi_region_memory(region), kept[304], want[304];
    for (int n = 0; n < 304; n++) kept[n] = (unsigned char)(n + 1);
    int shifts[] = {0, 1, 16, 99};
    for (int n = 0; n < 4; n++) {
        memcpy(memory, kept, 304);
        memcpy(want, kept, 304);
        memmove(want + shifts[n], want, 200);
        OK(tsumugi_get(job, memory + shifts[n], own, 200));
        CHECK(memcmp(memory, want, 304) == 0);
        memcpy(memory, kept, 304);
        OK(tsumugi_put(job, own + shifts[n], memory, 200));
        CHECK(memcmp(memory, want, 304) == 0);
    }
    OK(tsumugi_barrier(job));
    memcpy(want, kept, 304);
    size_t lengths[] = {305, (size_t)1 << 40, SIZE_MAX / 2, SIZE_MAX};
    for (int n = 0; n < 4; n++) {
        ANSWERS(TSUMUGI_ERROR_RANGE, tsumugi_get(job, want, there, lengths[n]));
        ANSWERS(TSUMUGI_ERROR_RANGE, tsumugi_put(job, there, want, lengths[n]));
        ANSWERS(TSUMUGI_ERROR_RANGE,
                tsumugi_put_signal(job, there, want, lengths[n], own, TSUMUGI_SIGNAL_SET, 1));
    }
    ANSWERS(TSUMUGI_ERROR_NOWHERE, tsumugi_get(job, want, TSUMUGI_ADDR_NULL, 100));
    CHECK(memcmp(want, kept, 304) == 0);
    OK(tsumugi_barrier(job));
    OK(tsumugi_unregister(job, region));
}

static void questions_have_answers(void)
{
    struct tsumugi_region *region, *part;
    OK(tsumugi_expose(job, 64, TSUMUGI_AGENT_CPU, &region));
    char *memory = tsumugi_region_memory(region);
    tsumugi_addr own = tsumugi_region_addr(region), found;
    void *local;
    OK(tsumugi_addr_of(job, memory + 9, &found));
    CHECK(found == own + 9);
    OK(tsumugi_addr_local(job, found, 3, &local));
    CHECK(local == memory + 9);
    ANSWERS(TSUMUGI_ERROR_RANGE, tsumugi_addr_local(job, found, 56, &local));
    int here = 0;
    ANSWERS(TSUMUGI_ERROR_REACH, tsumugi_addr_of(job, &here, &found));
    OK(tsumugi_starter(job, next, &found));
    ANSWERS(TSUMUGI_ERROR_NOWHERE, tsumugi_starter(job, size, &found));
    /* A part of the region can be registered again, under an address of its own. */
    OK(tsumugi_register(job, memory + 8, 16, &part));
    tsumugi_addr second = tsumugi_region_addr(part);
    uint64_t word = 3, back;
    OK(tsumugi_put(job, second, &word, 8));
    OK(tsumugi_get(job, &back, own + 8, 8));
    CHECK(back == 3 && tsumugi_region_memory(part) == memory + 8);
    OK(tsumugi_unregister(job, part));
    ANSWERS(TSUMUGI_ERROR_STALE, tsumugi_get(job, &back, second, 8));
    OK(tsumugi_unregister(job, region));
    ANSWERS(TSUMUGI_ERROR_NULL, tsumugi_unregister(job, NULL));
}

/* Memory of the program: static data, and the heap. */
static void memory_that_the_program_cannot_write_is_refused(void)
{
    struct tsumugi_region *region;
    long page = sysconf(_SC_PAGESIZE);
    int kinds[] = {PROT_READ, PROT_NONE, PROT_READ | PROT_WRITE};
    for (int kind = 0; kind < 3; kind++) {
        char *at = mmap(NULL, 3 * page, kinds[kind], MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(at != MAP_FAILED);
        if (kind == 2) CHECK(munmap(at + page, page) == 0);
        ANSWERS(TSUMUGI_ERROR_REACH, tsumugi_register(job, at + 8, page, &region));
        CHECK(strcmp(tsumugi_reason(), "the memory is not mapped readable and writable") == 0);
        CHECK(munmap(at, 3 * page) == 0);
    }
}

static void memory_of_the_program_is_reached(void)
{
    uint64_t *heap = malloc(sizeof data);
    uint64_t *kinds[] = {data, heap};
    for (int kind = 0; kind < 2; kind++) {
        uint64_t *own = kinds[kind];
        struct tsumugi_region *region;
        for (uint64_t n = 0; n < WORDS; n++) own[n] = n + rank;
        OK(tsumugi_register(job, own, sizeof data, &region));
        CHECK(tsumugi_region_memory(region) == own && own[WORDS - 1] == WORDS - 1 + rank);
        tsumugi_addr at, there = next_one(tsumugi_region_addr(region));
        void *local;
        OK(tsumugi_addr_of(job, own + 3, &at));
        CHECK(at == tsumugi_region_addr(region) + 24);
        OK(tsumugi_addr_local(job, at, 8, &local));
        CHECK(local == own + 3);
        uint64_t word;
        OK(tsumugi_get(job, &word, there + 8, 8));
        CHECK(word == 1 + next);
        /* A put, a get back and an atomic, which run in the background, one after the
         * other. */
        struct tsumugi_operation *put, *get, *add;
        OK(tsumugi_begin_put(job, there + 800, own, 80, NULL, &put));
        OK(tsumugi_begin_get(job, own + 200, there + 800, 80, put, &get));
        OK(tsumugi_begin_atomic8(job, TSUMUGI_ATOMIC_ADD, there + 800, 7, get, &add));
        OK(tsumugi_operation_wait(add, &word));
        CHECK(word == rank && tsumugi_operation_test(put) && tsumugi_operation_test(get));
        OK(tsumugi_operation_wait(put, NULL));
        OK(tsumugi_operation_wait(get, NULL));
        CHECK(own[200] == rank && own[209] == 9 + rank);
        OK(tsumugi_barrier(job));
        CHECK(own[100] == (rank + size - 1) % size + 7);
        OK(tsumugi_barrier(job));
        OK(tsumugi_unregister(job, region));
    }
    free(heap);
}

/* A thread that writes beside registered memory, on the same pages. */
static struct {
    pthread_t thread;
    atomic_int stop;
    uint64_t counts[PAGES];
} other;
static uint64_t pages[PAGES][PAGE_WORDS] __attribute__((aligned(4096)));

static void *go_on(void *unused)
{
    while (!other.stop) {
        for (int page = 0; page < PAGES; page++) {
            (*(volatile uint64_t *)&pages[page][0])++;
            other.counts[page]++;
        }
    }
    return unused;
}

static void pages_become_shared(void)
{
    for (int page = 0; page < PAGES; page++) {
        struct tsumugi_region *region;
        uint64_t *own = &pages[page][PAGE_WORDS / 2], word;
        *own = page;
        OK(tsumugi_register(job, own, 64, &region));
        OK(tsumugi_get(job, &word, tsumugi_region_addr(region), 8));
        CHECK(word == (uint64_t)page);
        OK(tsumugi_unregister(job, region));
    }
}

struct counter {
    tsumugi_addr at;
};

static void *count(void *counters)
{
    struct counter *all = counters;
    for (uint32_t to = 0; to < size; to++) {
        OK(tsumugi_atomic8(job, TSUMUGI_ATOMIC_ADD, all[to].at, 1, NULL));
        /* The program does not wait for these two; the flush does. */
        OK(tsumugi_begin_atomic8(job, TSUMUGI_ATOMIC_ADD, all[to].at, 1, NULL, NULL));
        OK(tsumugi_begin_atomic4(job, TSUMUGI_ATOMIC_OR, all[to].at + 8, 1u << rank, NULL, NULL));
        tsumugi_yield();
    }
    return NULL;
}

static void ults_add_up(void)
{
    struct tsumugi_region *region;
    OK(tsumugi_expose(job, 16, TSUMUGI_AGENT_CPU, &region));
    uint64_t bits[RANKS_MAX];
    struct counter counters[RANKS_MAX];
    OK(tsumugi_gather(job, tsumugi_region_addr(region), bits));
    for (uint32_t to = 0; to < size; to++) counters[to].at = bits[to];
    struct tsumugi_ult *ults[ULTS];
    for (int n = 0; n < ULTS; n++) {
        OK(tsumugi_spawn(tsumugi_workers(job), NULL, count, counters, &ults[n]));
    }
    for (int n = 0; n < ULTS; n++) OK(tsumugi_join(ults[n], NULL));
    OK(tsumugi_flush(job, next));
    OK(tsumugi_flush_all(job));
    ANSWERS(TSUMUGI_ERROR_NOWHERE, tsumugi_flush(job, size));
    OK(tsumugi_barrier(job));
    uint64_t sum, seen;
    OK(tsumugi_get(job, &sum, counters[rank].at, 8));
    OK(tsumugi_get(job, &seen, counters[rank].at + 8, 8));
    CHECK(sum == 2ul * ULTS * size && seen == (1ul << size) - 1);
    OK(tsumugi_barrier(job));
    OK(tsumugi_unregister(job, region));
}

/* The wait for an operation returns the operation's error. */
static void errors_come_with_the_end(void)
{
    struct tsumugi_operation *copy;
    tsumugi_addr from, null = TSUMUGI_ADDR_NULL;
    OK(tsumugi_starter(job, next, &from));
    OK(tsumugi_begin_copy(job, null, from, 8, NULL, &copy));
    ANSWERS(TSUMUGI_ERROR_NOWHERE, tsumugi_operation_wait(copy, NULL));
    OK(tsumugi_begin_copy(job, from + 8, from, 8, NULL, &copy));
    tsumugi_operation_let_go(copy);
    tsumugi_operation_let_go(NULL);
    OK(tsumugi_flush_all(job));
    int here = 0;
    ANSWERS(TSUMUGI_ERROR_REACH, tsumugi_begin_put(job, from, &here, 4, NULL, NULL));
    ANSWERS(TSUMUGI_ERROR_REACH, tsumugi_begin_get(job, &here, from, 4, NULL, NULL));
}

static void constructors_refuse_a_fork(
        struct tsumugi_job *of, struct tsumugi_group *world, struct tsumugi_comm *comm)
{
    struct tsumugi_region *region;
    struct tsumugi_window *window;
    struct tsumugi_rank_lock *lock;
    struct tsumugi_heap *heap;
    struct tsumugi_deque *deque;
    struct tsumugi_array *array;
    struct tsumugi_array_options options = {.size = sizeof options, .len = 8, .element_bytes = 8};
    ANSWERS(TSUMUGI_ERROR_JOB, tsumugi_expose(of, 8, TSUMUGI_AGENT_CPU, &region));
    ANSWERS(TSUMUGI_ERROR_JOB, tsumugi_window_create(of, 8, TSUMUGI_WINDOW_DEFAULT, &window));
    ANSWERS(TSUMUGI_ERROR_JOB, tsumugi_rank_lock_create(of, 0, 0, &lock));
    ANSWERS(TSUMUGI_ERROR_JOB, tsumugi_heap_create(of, 1 << 20, &heap));
    ANSWERS(TSUMUGI_ERROR_JOB, tsumugi_deque_create(of, 8, 8, &deque));
    ANSWERS(TSUMUGI_ERROR_JOB, tsumugi_array_create(of, &options, &array));
    ANSWERS(TSUMUGI_ERROR_JOB, tsumugi_group_duplicate(world, &world));
    ANSWERS(TSUMUGI_ERROR_JOB, tsumugi_group_split(world, 0, 0, &world));
    ANSWERS(TSUMUGI_ERROR_JOB, tsumugi_group_barrier(world, NULL));
    ANSWERS(TSUMUGI_ERROR_JOB, tsumugi_comm_duplicate(comm, &comm));
    CHECK(strstr(tsumugi_reason(), "is a fork of the rank") != NULL);
}

/* A child of the rank's process is no rank. */
static void a_fork_is_no_rank(struct tsumugi_job *of)
{
    struct tsumugi_group *world;
    struct tsumugi_comm *comm;
    OK(tsumugi_group_world(of, &world));
    OK(tsumugi_comm_open(of, &comm));
    pid_t child = fork();
    if (child == 0) {
        struct tsumugi_job *none;
        uint64_t all[RANKS_MAX];
        ANSWERS(TSUMUGI_ERROR_JOB, tsumugi_barrier(of));
        CHECK(strstr(tsumugi_reason(), "is a fork of the rank") != NULL);
        ANSWERS(TSUMUGI_ERROR_JOB, tsumugi_gather(of, 1, all));
        ANSWERS(TSUMUGI_ERROR_JOB, tsumugi_start(&none));
        constructors_refuse_a_fork(of, world, comm);
        ANSWERS(TSUMUGI_ERROR_JOB, tsumugi_end(of));
        _exit(7);
    }
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    OK(tsumugi_group_close(world));
    OK(tsumugi_comm_close(comm));
}

static void a_process_is_a_rank_once(void)
{
    struct tsumugi_job *second;
    ANSWERS(TSUMUGI_ERROR_JOB, tsumugi_start(&second));
    CHECK(strcmp(tsumugi_reason(), "a process starts a rank at most once") == 0);
    ANSWERS(TSUMUGI_ERROR_JOB, tsumugi_run(play, NULL, NULL));
    CHECK(strcmp(tsumugi_reason(), "a process starts a rank at most once") == 0);
}

static void *play_within_run(struct tsumugi_job *of, void *value)
{
    ANSWERS(TSUMUGI_ERROR_JOB, tsumugi_end(of));
    CHECK(strstr(tsumugi_reason(), "tsumugi_run") != NULL);
    return play(of, value);
}

static void *play(struct tsumugi_job *of, void *value)
{
    job = of;
    rank = tsumugi_rank(job);
    size = tsumugi_size(job);
    CHECK(rank < size && size <= RANKS_MAX);
    next = (rank + 1) % size;
    every_access_reaches_the_next_rank(TSUMUGI_AGENT_CPU);
    every_access_reaches_the_next_rank(TSUMUGI_AGENT_DEVICE);
    ends_may_overlap();
    questions_have_answers();
    ults_add_up();
    errors_come_with_the_end();
    return value;
}

int main(int argc, char **argv)
{
    int value = 0;
    void *value_of_main = NULL;
    CHECK(tsumugi_rank(NULL) == UINT32_MAX && tsumugi_size(NULL) == 0);
    if (argc > 1 && strcmp(argv[1], "run") == 0) {
        OK(tsumugi_run(play_within_run, &value, &value_of_main));
        CHECK(value_of_main == &value);
    } else {
        struct tsumugi_job *own;
        OK(tsumugi_start(&own));
        a_fork_is_no_rank(own);
        a_process_is_a_rank_once();
        play(own, &value);
        memory_that_the_program_cannot_write_is_refused();
        memory_of_the_program_is_reached();
        CHECK(pthread_create(&other.thread, NULL, go_on, NULL) == 0);
        pages_become_shared();
        OK(tsumugi_end(own));
        other.stop = 1;
        CHECK(pthread_join(other.thread, NULL) == 0);
        /* No write of the other thread was lost, neither when pages became shared nor at
         * the end of the job. */
        for (int page = 0; page < PAGES; page++) CHECK(pages[page][0] == other.counts[page]);
    }
    a_process_is_a_rank_once();
    if (rank == 0) puts("all is well");
    return 0;
}
