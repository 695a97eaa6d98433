/* Signals and waits, and the private heap. */
#include "rank.h"

enum { ROUNDS = 100, DATA = 64, FLAG = 8, BYTES = 256 };

static struct tsumugi_region *region;
static tsumugi_addr own, there;

static void data_come_before_their_signal(void)
{
    char bytes[100], found[100];
    uint64_t word;
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        memset(bytes, (int)(round + rank), sizeof bytes);
        OK(tsumugi_put_signal(job, there + DATA, bytes, sizeof bytes, there, TSUMUGI_SIGNAL_SET,
                              round));
        OK(tsumugi_wait_until(job, own, TSUMUGI_UNTIL_AT_LEAST, round, &word));
        CHECK(word == round);
        OK(tsumugi_get(job, found, own + DATA, sizeof found));
        CHECK(found[0] == (char)(round + before) && found[99] == found[0]);
        OK(tsumugi_barrier(job));
    }
    /* A signal without bytes. */
    OK(tsumugi_put_signal(job, TSUMUGI_ADDR_NULL, NULL, 0, there, TSUMUGI_SIGNAL_ADD, 5));
    OK(tsumugi_wait_until(job, own, TSUMUGI_UNTIL_EQUAL, ROUNDS + 5, NULL));
    OK(tsumugi_barrier(job));
}

/* ULTs sleep until the previous rank signals. */
static void *sleep_until(void *bit)
{
    OK(tsumugi_wait_until(job, own + FLAG, TSUMUGI_UNTIL_ANY_BIT, (uintptr_t)bit, NULL));
    return NULL;
}

static void ults_sleep_until_a_signal(void)
{
    struct tsumugi_ult *ults[8];
    uint64_t old, word;
    for (uintptr_t n = 0; n < 8; n++) {
        OK(tsumugi_spawn(tsumugi_workers(job), NULL, sleep_until, (void *)(1ul << n), &ults[n]));
    }
    for (uint64_t n = 0; n < 8; n++) {
        OK(tsumugi_signal(job, there + FLAG, TSUMUGI_SIGNAL_ADD, 1ul << n, &old));
        CHECK(old == (1ul << n) - 1);
    }
    for (int n = 0; n < 8; n++) OK(tsumugi_join(ults[n], NULL));
    OK(tsumugi_wait_until(job, own + FLAG, TSUMUGI_UNTIL_EQUAL, 255, NULL));
    OK(tsumugi_barrier(job));
    OK(tsumugi_signal(job, there + FLAG, TSUMUGI_SIGNAL_SET, 1000 + rank, NULL));
    OK(tsumugi_wait_until_within(job, own + FLAG, TSUMUGI_UNTIL_NOT_EQUAL, 255, TSUMUGI_FOREVER,
                                 &word));
    CHECK(word == 1000 + before);
    REFUSES(TSUMUGI_ERROR_TIMED_OUT, "in 1000000 ns",
            tsumugi_wait_until_within(job, own + FLAG, TSUMUGI_UNTIL_EQUAL, 255, 1000000, NULL));
    OK(tsumugi_barrier(job));
}

static void wrong_values_are_refused(void)
{
    uint64_t word = 1;
    REFUSES(TSUMUGI_ERROR_NULL, "job", tsumugi_signal(NULL, there, TSUMUGI_SIGNAL_SET, 1, NULL));
    REFUSES(TSUMUGI_ERROR_NULL, "job",
            tsumugi_put_signal(NULL, there, &word, 8, there, TSUMUGI_SIGNAL_SET, 1));
    REFUSES(TSUMUGI_ERROR_NULL, "from",
            tsumugi_put_signal(job, there, NULL, 8, there, TSUMUGI_SIGNAL_SET, 1));
    REFUSES(TSUMUGI_ERROR_NULL, "job",
            tsumugi_wait_until(NULL, own, TSUMUGI_UNTIL_EQUAL, 1, &word));
    REFUSES(TSUMUGI_ERROR_VALUE, "7", tsumugi_signal(job, there, 7, 1, NULL));
    REFUSES(TSUMUGI_ERROR_VALUE, "-2", tsumugi_put_signal(job, there, &word, 8, there, -2, 1));
    REFUSES(TSUMUGI_ERROR_VALUE, "9", tsumugi_wait_until(job, own, 9, 1, &word));
    REFUSES(TSUMUGI_ERROR_UNALIGNED, "8",
            tsumugi_signal(job, there + 4, TSUMUGI_SIGNAL_SET, 1, NULL));
    REFUSES(TSUMUGI_ERROR_RANGE, "8",
            tsumugi_signal(job, there + BYTES, TSUMUGI_SIGNAL_SET, 1, NULL));
    REFUSES(TSUMUGI_ERROR_NOWHERE, "",
            tsumugi_signal(job, TSUMUGI_ADDR_NULL, TSUMUGI_SIGNAL_SET, 1, NULL));
    if (size > 1) {
        REFUSES(TSUMUGI_ERROR_ELSEWHERE, "",
                tsumugi_wait_until(job, there, TSUMUGI_UNTIL_EQUAL, 1, &word));
    }
    OK(tsumugi_barrier(job));
}

static void the_private_heap_has_blocks(void)
{
    char *block = tsumugi_malloc(100);
    CHECK(block != NULL && (uintptr_t)block % 16 == 0);
    memset(block, 7, 100);
    block = tsumugi_realloc(block, 100000);
    CHECK(block != NULL && block[0] == 7 && block[99] == 7);
    block = tsumugi_realloc(block, 10);
    CHECK(block != NULL && block[9] == 7);
    tsumugi_free(block);
    char *zeroes = tsumugi_calloc(1000, 8);
    for (int n = 0; n < 8000; n++) CHECK(zeroes[n] == 0);
    tsumugi_free(zeroes);
    CHECK(tsumugi_calloc(SIZE_MAX / 2, 3) == NULL && tsumugi_malloc(SIZE_MAX) == NULL);
    void *empty = tsumugi_malloc(0), *fresh = tsumugi_realloc(NULL, 5);
    CHECK(empty != NULL && fresh != NULL && empty != fresh);
    CHECK(tsumugi_realloc(fresh, SIZE_MAX) == NULL);
    tsumugi_free(empty);
    tsumugi_free(fresh);
    tsumugi_free(NULL);
}

static void play(void)
{
    uint64_t all[RANKS_MAX];
    OK(tsumugi_expose(job, BYTES, TSUMUGI_AGENT_CPU, &region));
    own = tsumugi_region_addr(region);
    OK(tsumugi_gather(job, own, all));
    there = all[next];
    data_come_before_their_signal();
    ults_sleep_until_a_signal();
    wrong_values_are_refused();
    the_private_heap_has_blocks();
    OK(tsumugi_unregister(job, region));
}
