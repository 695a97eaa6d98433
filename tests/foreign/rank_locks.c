/* Locks of all ranks: each kind, by ULTs of each rank. */
#include "rank.h"

enum { ULTS = 8, ROUNDS = 50 };

static struct tsumugi_rank_lock *lock;
static tsumugi_addr pair;

/* Both words change together, so a reader sees them equal. */
static void *change(void *unused)
{
    uint64_t words[2];
    for (int n = 0; n < ROUNDS; n++) {
        OK(tsumugi_rank_lock_lock(lock, TSUMUGI_EXCLUSIVE));
        OK(tsumugi_get(job, words, pair, 16));
        CHECK(words[0] == words[1]);
        words[0]++;
        OK(tsumugi_put(job, pair, words, 8));
        tsumugi_yield();
        OK(tsumugi_put(job, pair + 8, words, 8));
        OK(tsumugi_rank_lock_unlock(lock));
        OK(tsumugi_rank_lock_lock(lock, TSUMUGI_SHARED));
        OK(tsumugi_get(job, words, pair, 16));
        CHECK(words[0] == words[1]);
        OK(tsumugi_rank_lock_unlock(lock));
    }
    return unused;
}

static void all_ranks_change_a_pair(int kind)
{
    struct tsumugi_ult *ults[ULTS];
    uint64_t zeroes[2] = {0, 0}, words[2];
    OK(tsumugi_rank_lock_create(job, size - 1, kind, &lock));
    if (rank == 0) OK(tsumugi_put(job, pair, zeroes, 16));
    OK(tsumugi_barrier(job));
    for (int n = 0; n < ULTS; n++) {
        OK(tsumugi_spawn(tsumugi_workers(job), NULL, change, NULL, &ults[n]));
    }
    for (int n = 0; n < ULTS; n++) OK(tsumugi_join(ults[n], NULL));
    OK(tsumugi_barrier(job));
    OK(tsumugi_get(job, words, pair, 16));
    CHECK(words[0] == (uint64_t)ULTS * ROUNDS * size && words[1] == words[0]);
    /* Held by rank 0: others do not get it. */
    if (rank == 0) {
        OK(tsumugi_rank_lock_try_lock(lock, TSUMUGI_EXCLUSIVE));
        REFUSES(TSUMUGI_ERROR_BUSY, "SharedLock",
                tsumugi_rank_lock_try_lock(lock, TSUMUGI_SHARED));
    }
    OK(tsumugi_barrier(job));
    if (rank != 0) {
        REFUSES(TSUMUGI_ERROR_BUSY, "is held", tsumugi_rank_lock_try_lock(lock, TSUMUGI_EXCLUSIVE));
        REFUSES(TSUMUGI_ERROR_TIMED_OUT, "within 1000000 ns",
                tsumugi_rank_lock_lock_within(lock, TSUMUGI_EXCLUSIVE, 1000000));
        REFUSES(TSUMUGI_ERROR_NOT_LOCKED, "SharedLock", tsumugi_rank_lock_unlock(lock));
    }
    OK(tsumugi_barrier(job));
    if (rank == 0) OK(tsumugi_rank_lock_unlock(lock));
    OK(tsumugi_rank_lock_lock_within(lock, TSUMUGI_SHARED, TSUMUGI_FOREVER));
    if (kind != TSUMUGI_RANK_LOCK_MUTEX) {
        /* Several shared holds of one rank. */
        OK(tsumugi_rank_lock_lock(lock, TSUMUGI_SHARED));
        OK(tsumugi_rank_lock_unlock(lock));
    }
    OK(tsumugi_rank_lock_unlock(lock));
    REFUSES(TSUMUGI_ERROR_NOT_LOCKED, "SharedLock", tsumugi_rank_lock_unlock(lock));
    OK(tsumugi_barrier(job));
    OK(tsumugi_rank_lock_destroy(lock));
    REFUSES(TSUMUGI_ERROR_ENDED, "the lock at", tsumugi_rank_lock_destroy(lock));
    REFUSES(TSUMUGI_ERROR_ENDED, "the lock at", tsumugi_rank_lock_lock(lock, TSUMUGI_SHARED));
    REFUSES(TSUMUGI_ERROR_ENDED, "the lock at", tsumugi_rank_lock_try_lock(lock, TSUMUGI_SHARED));
    REFUSES(TSUMUGI_ERROR_ENDED, "the lock at",
            tsumugi_rank_lock_lock_within(lock, TSUMUGI_SHARED, 1));
    REFUSES(TSUMUGI_ERROR_ENDED, "the lock at", tsumugi_rank_lock_unlock(lock));
}

static void wrong_values_are_refused(void)
{
    char none_such[32];
    snprintf(none_such, sizeof none_such, "rank %u", size);
    REFUSES(TSUMUGI_ERROR_NULL, "job", tsumugi_rank_lock_create(NULL, 0, 0, &lock));
    REFUSES(TSUMUGI_ERROR_NULL, "out", tsumugi_rank_lock_create(job, 0, 0, NULL));
    REFUSES(TSUMUGI_ERROR_VALUE, "4", tsumugi_rank_lock_create(job, 0, 4, &lock));
    REFUSES(TSUMUGI_ERROR_RANK, none_such, tsumugi_rank_lock_create(job, size, 0, &lock));
    REFUSES(TSUMUGI_ERROR_NULL, "lock", tsumugi_rank_lock_lock(NULL, TSUMUGI_SHARED));
    REFUSES(TSUMUGI_ERROR_NULL, "lock", tsumugi_rank_lock_unlock(NULL));
    REFUSES(TSUMUGI_ERROR_NULL, "lock", tsumugi_rank_lock_destroy(NULL));
    OK(tsumugi_rank_lock_create(job, 0, TSUMUGI_RANK_LOCK_NEUTRAL, &lock));
    REFUSES(TSUMUGI_ERROR_VALUE, "2", tsumugi_rank_lock_lock(lock, 2));
    /* The end of the handle gives the lock back. */
    OK(tsumugi_rank_lock_lock(lock, TSUMUGI_SHARED));
    OK(tsumugi_rank_lock_destroy(lock));
    OK(tsumugi_barrier(job));
}

static void play(void)
{
    uint64_t all[RANKS_MAX];
    struct tsumugi_region *region;
    OK(tsumugi_expose(job, 16, TSUMUGI_AGENT_CPU, &region));
    OK(tsumugi_gather(job, tsumugi_region_addr(region), all));
    pair = all[0];
    for (int kind = TSUMUGI_RANK_LOCK_MUTEX; kind <= TSUMUGI_RANK_LOCK_WRITERS; kind++) {
        all_ranks_change_a_pair(kind);
    }
    wrong_values_are_refused();
    OK(tsumugi_unregister(job, region));
}
