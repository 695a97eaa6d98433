/* Meeting points, latches, semaphores, reader-writer locks, once, full and empty words,
 * workers; and a main that enters a scheduler. tests/capi.rs here compiles and runs it. */

#include "check.h"

enum { MEMBERS = 8, ROUNDS = 100 };

static struct tsumugi_scheduler *scheduler;
static struct tsumugi_meeting *meeting;
static struct tsumugi_latch *latch;
static struct tsumugi_semaphore *semaphore;
static struct tsumugi_rwlock *rwlock;
static struct tsumugi_once once;
static unsigned arrived[ROUNDS], inits, lasts, readers_seen;
static uint64_t shared_value, cell, sum;

static void init(void *arg) { *(unsigned *)arg += 1; }

static void *member(void *arg)
{
    uintptr_t number = (uintptr_t)arg;
    OK(tsumugi_once_call(&once, init, &inits));
    CHECK(inits == 1);
    for (int round = 0; round < ROUNDS; round++) {
        OK(tsumugi_semaphore_acquire(semaphore, 1));
        arrived[round]++;
        if (round % 8 == 0) tsumugi_yield();
        OK(tsumugi_semaphore_release(semaphore, 1));
        bool is_last;
        OK(tsumugi_meeting_wait(meeting, &is_last));
        CHECK(arrived[round] == MEMBERS);
        if (is_last) lasts++;
        OK(tsumugi_rwlock_read(rwlock));
        uint64_t seen = shared_value;
        if (round % 8 == 0) tsumugi_yield();
        CHECK(shared_value == seen);
        OK(tsumugi_rwlock_unlock_read(rwlock));
        if (round % MEMBERS == (int)number) {
            OK(tsumugi_rwlock_write(rwlock));
            shared_value++;
            tsumugi_yield();
            shared_value++;
            OK(tsumugi_rwlock_unlock_write(rwlock));
        }
        OK(tsumugi_meeting_wait_within(meeting, TSUMUGI_FOREVER, false, NULL));
    }
    OK(tsumugi_latch_count_down(latch, 1));
    return NULL;
}

static void *produce(void *arg)
{
    (void)arg;
    for (uint64_t i = 1; i <= ROUNDS; i++) OK(tsumugi_word_write_empty(&cell, i));
    return NULL;
}

static void *consume(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS / 2; i++) {
        uint64_t value;
        OK(tsumugi_word_take(&cell, &value));
        sum += value;
    }
    return NULL;
}

static void *watch(void *arg)
{
    uint64_t value;
    OK(tsumugi_word_read(arg, &value));
    CHECK(value == 7 && tsumugi_word_is_full(arg));
    readers_seen++;
    return NULL;
}

static void *stays(void *arg)
{
    for (int i = 0; i < ROUNDS; i++) {
        size_t worker;
        OK(tsumugi_worker_number(&worker));
        CHECK(worker == *(size_t *)arg);
        tsumugi_yield();
    }
    return NULL;
}

/* The program of one scheduler, whose caller is a ULT. */
static void whole(size_t workers)
{
    size_t worker;
    CHECK(tsumugi_worker_count(NULL) == workers && tsumugi_worker_count(scheduler) == workers);
    OK(tsumugi_worker_number(&worker));
    CHECK(worker < workers);
    ANSWERS(TSUMUGI_ERROR_NULL, tsumugi_worker_number(NULL));

    OK(tsumugi_meeting_create(MEMBERS, &meeting));
    OK(tsumugi_latch_create(MEMBERS, &latch));
    OK(tsumugi_semaphore_create(1, &semaphore));
    OK(tsumugi_rwlock_create(&rwlock));
    memset(arrived, 0, sizeof arrived);
    once.state = inits = lasts = 0;
    shared_value = sum = readers_seen = 0;
    ANSWERS(TSUMUGI_ERROR_TIMED_OUT, tsumugi_latch_wait_within(latch, 1000, false));
    struct tsumugi_particulars first = {.size = sizeof first, .flags = TSUMUGI_SPAWN_CHILD_FIRST};
    struct tsumugi_ult *members[MEMBERS];
    for (uintptr_t i = 0; i < MEMBERS; i++)
        OK(tsumugi_spawn(NULL, i % 2 ? &first : NULL, member, (void *)i, &members[i]));
    OK(tsumugi_latch_wait(latch));
    for (int i = 0; i < MEMBERS; i++) OK(tsumugi_join(members[i], NULL));
    CHECK(lasts == ROUNDS && inits == 1 && shared_value == 2 * ROUNDS);

    OK(tsumugi_semaphore_try_acquire(semaphore, 1));
    ANSWERS(TSUMUGI_ERROR_BUSY, tsumugi_semaphore_try_acquire(semaphore, 1));
    ANSWERS(TSUMUGI_ERROR_TIMED_OUT, tsumugi_semaphore_acquire_within(semaphore, 1, 1000, false));
    OK(tsumugi_rwlock_try_read(rwlock));
    ANSWERS(TSUMUGI_ERROR_BUSY, tsumugi_rwlock_try_write(rwlock));
    ANSWERS(TSUMUGI_ERROR_TIMED_OUT, tsumugi_rwlock_write_within(rwlock, 1000, false));
    OK(tsumugi_rwlock_unlock_read(rwlock));
    OK(tsumugi_rwlock_try_write(rwlock));
    ANSWERS(TSUMUGI_ERROR_TIMED_OUT, tsumugi_rwlock_read_within(rwlock, 1000, false));
    ANSWERS(TSUMUGI_ERROR_NOT_LOCKED, tsumugi_rwlock_unlock_read(rwlock));
    OK(tsumugi_rwlock_unlock_write(rwlock));
    for (int n = 0; n < 2; n++) {
        ANSWERS(TSUMUGI_ERROR_NOT_LOCKED, tsumugi_rwlock_unlock_read(rwlock));
        ANSWERS(TSUMUGI_ERROR_NOT_LOCKED, tsumugi_rwlock_unlock_write(rwlock));
    }
    OK(tsumugi_rwlock_try_read(rwlock));
    ANSWERS(TSUMUGI_ERROR_NOT_LOCKED, tsumugi_rwlock_unlock_write(rwlock));
    OK(tsumugi_rwlock_unlock_read(rwlock));
    OK(tsumugi_rwlock_try_write(rwlock));
    OK(tsumugi_rwlock_unlock_write(rwlock));
    ANSWERS(TSUMUGI_ERROR_VALUE, tsumugi_latch_count_down(latch, 1));
    CHECK(strcmp(tsumugi_reason(), "a latch with 0 left cannot count 1 events") == 0);
    OK(tsumugi_latch_wait(latch));
    OK(tsumugi_semaphore_release(semaphore, 2));
    ANSWERS(TSUMUGI_ERROR_VALUE, tsumugi_semaphore_release(semaphore, SIZE_MAX - 1));
    OK(tsumugi_semaphore_try_acquire(semaphore, 2));
    ANSWERS(TSUMUGI_ERROR_BUSY, tsumugi_semaphore_try_acquire(semaphore, 1));
    OK(tsumugi_semaphore_release(semaphore, SIZE_MAX));
    ANSWERS(TSUMUGI_ERROR_VALUE, tsumugi_semaphore_release(semaphore, 1));
    OK(tsumugi_semaphore_try_acquire(semaphore, SIZE_MAX));
    tsumugi_meeting_destroy(meeting);
    tsumugi_latch_destroy(latch);
    tsumugi_semaphore_destroy(semaphore);
    tsumugi_rwlock_destroy(rwlock);

    /* A word is full at first. */
    CHECK(tsumugi_word_is_full(&cell));
    OK(tsumugi_word_empty(&cell));
    struct tsumugi_ult *produces, *consumes[2];
    OK(tsumugi_spawn(NULL, &first, produce, NULL, &produces));
    for (int i = 0; i < 2; i++) OK(tsumugi_spawn(NULL, NULL, consume, NULL, &consumes[i]));
    OK(tsumugi_join(produces, NULL));
    for (int i = 0; i < 2; i++) OK(tsumugi_join(consumes[i], NULL));
    CHECK(sum == ROUNDS * (ROUNDS + 1) / 2 && !tsumugi_word_is_full(&cell));
    struct tsumugi_ult *watches;
    OK(tsumugi_spawn(NULL, &first, watch, &cell, &watches));
    OK(tsumugi_word_write(&cell, 7));
    OK(tsumugi_join(watches, NULL));
    CHECK(readers_seen == 1);
    OK(tsumugi_word_write_full(&cell, 8));
    OK(tsumugi_word_empty(&cell));
    OK(tsumugi_word_fill(&cell));
    CHECK(tsumugi_word_is_full(&cell) && cell == 8);
    /* Waits with a limit leave the word as it was. */
    uint64_t seen = 0;
    ANSWERS(TSUMUGI_ERROR_TIMED_OUT, tsumugi_word_write_empty_within(&cell, 9, 1000, false));
    OK(tsumugi_word_write_full_within(&cell, 10, TSUMUGI_FOREVER, true));
    OK(tsumugi_word_read_within(&cell, &seen, 0, false));
    CHECK(seen == 10 && tsumugi_word_is_full(&cell));
    OK(tsumugi_word_take_within(&cell, &seen, 1000, false));
    ANSWERS(TSUMUGI_ERROR_TIMED_OUT, tsumugi_word_take_within(&cell, &seen, 1000, false));
    ANSWERS(TSUMUGI_ERROR_TIMED_OUT, tsumugi_word_read_within(&cell, &seen, 1000, true));
    ANSWERS(TSUMUGI_ERROR_TIMED_OUT, tsumugi_word_write_full_within(&cell, 9, 0, false));
    CHECK(cell == 10 && !tsumugi_word_is_full(&cell));
    OK(tsumugi_word_write_empty_within(&cell, 11, 1000, false));
    CHECK(cell == 11 && tsumugi_word_is_full(&cell));

    for (worker = 0; worker < workers; worker++) {
        struct tsumugi_particulars pinned = {.size = sizeof pinned, .worker_plus_one = worker + 1};
        struct tsumugi_ult *ult;
        OK(tsumugi_spawn(NULL, &pinned, stays, &worker, &ult));
        OK(tsumugi_join(ult, NULL));
    }
}

static void *run(void *workers)
{
    whole(*(size_t *)workers);
    return NULL;
}

int main(void)
{
    size_t nothing;
    ANSWERS(TSUMUGI_ERROR_NO_ULT, tsumugi_worker_number(&nothing));
    CHECK(tsumugi_worker_count(NULL) == 0);
    for (size_t workers = 1; workers <= 2; workers++) {
        struct tsumugi_config config = {.size = sizeof config, .workers = workers};
        OK(tsumugi_scheduler_create(&config, &scheduler));
        OK(tsumugi_scheduler_run(scheduler, run, &workers, NULL));
        tsumugi_scheduler_destroy(scheduler);

        /* The same, by a main that becomes a ULT. */
        OK(tsumugi_scheduler_create(&config, &scheduler));
        ANSWERS(TSUMUGI_ERROR_NO_ULT, tsumugi_scheduler_leave(scheduler));
        int entered = tsumugi_scheduler_enter(scheduler);
        if (entered != TSUMUGI_ERROR_UNSUPPORTED) {
            OK(entered);
            ANSWERS(TSUMUGI_ERROR_RUNNING, tsumugi_scheduler_enter(scheduler));
            ANSWERS(TSUMUGI_ERROR_RUNNING, tsumugi_scheduler_start(scheduler));
            whole(workers);
            OK(tsumugi_scheduler_leave(scheduler));
            ANSWERS(TSUMUGI_ERROR_NO_ULT, tsumugi_worker_number(&nothing));
            ANSWERS(TSUMUGI_ERROR_ENDED, tsumugi_scheduler_enter(scheduler));
        }
        tsumugi_scheduler_destroy(scheduler);
    }
    puts("all is well");
    return 0;
}
