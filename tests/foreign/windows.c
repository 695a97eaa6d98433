/* Windows: fences, epochs, holds, atomics; and the global heap. */
#include "rank.h"

enum { BYTES = 1024 };

static struct tsumugi_window *window;

static void puts_land_by_the_fence(void)
{
    char data[100], found[100];
    uint64_t *own, old, word = 0;
    uint32_t old4;
    void *memory;
    OK(tsumugi_window_memory(window, &memory));
    own = memory;
    CHECK((uintptr_t)own % 64 == 0);
    memset(data, 1 + (int)rank, sizeof data);
    OK(tsumugi_window_put(window, next, 8, data, sizeof data));
    OK(tsumugi_window_fence(window));
    CHECK(((char *)memory)[8] == (char)(1 + before) && ((char *)memory)[107] == (char)(1 + before));
    OK(tsumugi_window_get(window, next, 8, found, sizeof found));
    CHECK(memcmp(found, data, sizeof found) == 0);
    OK(tsumugi_window_atomic8(window, TSUMUGI_ATOMIC_ADD, next, 200, 5, &old));
    CHECK(old == 0);
    OK(tsumugi_window_atomic8(window, TSUMUGI_ATOMIC_OR, next, 200, 8, NULL));
    OK(tsumugi_window_atomic8(window, TSUMUGI_ATOMIC_AND, next, 200, 12, &old));
    CHECK(old == 13);
    OK(tsumugi_window_atomic8(window, TSUMUGI_ATOMIC_XOR, next, 200, 1, &old));
    CHECK(old == 12);
    OK(tsumugi_window_compare_swap8(window, next, 200, 13, 99, &old));
    CHECK(old == 13);
    OK(tsumugi_window_atomic8(window, TSUMUGI_ATOMIC_SWAP, next, 200, 7, &old));
    CHECK(old == 99);
    OK(tsumugi_window_atomic4(window, TSUMUGI_ATOMIC_ADD, next, 208, 3, &old4));
    CHECK(old4 == 0);
    OK(tsumugi_window_compare_swap4(window, next, 208, 3, 4, &old4));
    CHECK(old4 == 3);
    word = 77;
    OK(tsumugi_window_put(window, next, 216, &word, 8));
    OK(tsumugi_window_flush(window, next));
    OK(tsumugi_window_flush_all(window));
    OK(tsumugi_barrier(job));
    CHECK(own[25] == 7 && own[27] == 77);
    OK(tsumugi_barrier(job));
}

/* A get or a put may overlap the own array, and what is refused changes and reads nothing. */
static void ends_may_overlap(void)
{
    unsigned char *own, kept[200], want[200];
    void *memory;
    OK(tsumugi_window_memory(window, &memory));
    own = memory;
    for (int n = 0; n < 200; n++) kept[n] = (unsigned char)(n + 1);
    memcpy(own, kept, 200);
    memcpy(want, kept, 200);
    memmove(want + 16, want, 150);
    OK(tsumugi_window_get(window, rank, 0, own, 200));
    CHECK(memcmp(own, kept, 200) == 0);
    OK(tsumugi_window_get(window, rank, 0, own + 16, 150));
    CHECK(memcmp(own, want, 200) == 0);
    memcpy(own, kept, 200);
    OK(tsumugi_window_put(window, rank, 16, own, 150));
    CHECK(memcmp(own, want, 200) == 0);
    memset(own, 0, 200);
    memcpy(want, kept, 200);
    size_t lengths[] = {BYTES - 7, (size_t)1 << 40, SIZE_MAX / 2, SIZE_MAX - 7, SIZE_MAX};
    for (uint32_t to = 0; to < size; to++) {
        for (int n = 0; n < 5; n++) {
            REFUSES(TSUMUGI_ERROR_RANGE, "1024", tsumugi_window_get(window, to, 8, want, lengths[n]));
            REFUSES(TSUMUGI_ERROR_RANGE, "1024", tsumugi_window_put(window, to, 8, want, lengths[n]));
        }
        REFUSES(TSUMUGI_ERROR_RANGE, "1024", tsumugi_window_put(window, to, SIZE_MAX, want, 8));
    }
    REFUSES(TSUMUGI_ERROR_RANK, "rank", tsumugi_window_get(window, size, 0, want, 100));
    REFUSES(TSUMUGI_ERROR_RANK, "rank", tsumugi_window_put(window, size, 0, want, 100));
    CHECK(memcmp(want, kept, 200) == 0);
    OK(tsumugi_barrier(job));
}

/* Each rank opens its memory to the rank before it. */
static void epochs_order_accesses(void)
{
    struct tsumugi_exposure *exposure;
    struct tsumugi_epoch *epoch;
    bool is_over = false;
    uint64_t word, *own;
    void *memory;
    OK(tsumugi_window_memory(window, &memory));
    own = memory;
    for (uint64_t round = 1; round <= 20; round++) {
        OK(tsumugi_window_post(window, &before, 1, &exposure));
        OK(tsumugi_window_start(window, &next, 1, &epoch));
        word = round * 100 + rank;
        OK(tsumugi_window_put(window, next, 400, &word, 8));
        OK(tsumugi_epoch_complete(epoch));
        OK(tsumugi_exposure_test(exposure, &is_over));
        OK(tsumugi_exposure_wait(exposure));
        CHECK(own[50] == round * 100 + before);
    }
    REFUSES(TSUMUGI_ERROR_ENDED, "the epoch at", tsumugi_epoch_complete(epoch));
    REFUSES(TSUMUGI_ERROR_ENDED, "the exposure at", tsumugi_exposure_wait(exposure));
    REFUSES(TSUMUGI_ERROR_ENDED, "the exposure at", tsumugi_exposure_test(exposure, &is_over));
    OK(tsumugi_barrier(job));
}

static void holds_exclude_each_other(int design)
{
    struct tsumugi_hold *hold, *more;
    uint64_t word;
    for (int n = 0; n < 50; n++) {
        OK(tsumugi_window_lock(window, 0, TSUMUGI_EXCLUSIVE, &hold));
        OK(tsumugi_window_get(window, 0, 600, &word, 8));
        word++;
        OK(tsumugi_window_put(window, 0, 600, &word, 8));
        OK(tsumugi_hold_release(hold));
    }
    OK(tsumugi_barrier(job));
    OK(tsumugi_window_lock(window, 0, TSUMUGI_SHARED, &hold));
    OK(tsumugi_window_get(window, 0, 600, &word, 8));
    CHECK(word == 50 * size);
    REFUSES(TSUMUGI_ERROR_HELD, "rank 0", tsumugi_hold_lock(hold, 0, TSUMUGI_SHARED, &more));
    OK(tsumugi_hold_release(hold));
    OK(tsumugi_window_lock_all(window, &hold));
    OK(tsumugi_window_get(window, 0, 600, &word, 8));
    OK(tsumugi_hold_release(hold));
    OK(tsumugi_window_unchecked(window, &hold));
    OK(tsumugi_hold_release(hold));
    OK(tsumugi_barrier(job));
    if (design == TSUMUGI_WINDOW_GLOBAL) {
        OK(tsumugi_window_lock(window, 0, TSUMUGI_EXCLUSIVE, &hold));
        if (size > 1) {
            REFUSES(TSUMUGI_ERROR_HELD, "one lock",
                    tsumugi_hold_lock(hold, 1, TSUMUGI_EXCLUSIVE, &more));
        }
        OK(tsumugi_hold_release(hold));
    } else if (size > 1) {
        /* The first hold may end first. */
        OK(tsumugi_window_lock(window, 0, TSUMUGI_EXCLUSIVE, &hold));
        OK(tsumugi_hold_lock(hold, 1, TSUMUGI_EXCLUSIVE, &more));
        OK(tsumugi_hold_release(hold));
        OK(tsumugi_hold_release(more));
    }
    REFUSES(TSUMUGI_ERROR_ENDED, "the hold at", tsumugi_hold_release(hold));
    REFUSES(TSUMUGI_ERROR_ENDED, "the hold at", tsumugi_hold_lock(hold, 0, TSUMUGI_SHARED, &more));
    OK(tsumugi_barrier(job));
}

static void wrong_values_are_refused(void)
{
    uint64_t word = 0;
    void *memory;
    bool is;
    struct tsumugi_window *none;
    struct tsumugi_hold *hold;
    struct tsumugi_epoch *epoch;
    struct tsumugi_exposure *exposure;
    char none_such[32];
    snprintf(none_such, sizeof none_such, "rank %u", size);
    REFUSES(TSUMUGI_ERROR_NULL, "job", tsumugi_window_create(NULL, 8, 0, &none));
    REFUSES(TSUMUGI_ERROR_NULL, "out", tsumugi_window_create(job, 8, 0, NULL));
    REFUSES(TSUMUGI_ERROR_VALUE, "9", tsumugi_window_create(job, 8, 9, &none));
    REFUSES(TSUMUGI_ERROR_RANK, none_such, tsumugi_window_put(window, size, 0, &word, 8));
    /* In a job of several nodes the flush may return this error. */
    if (tsumugi_window_put(window, rank, BYTES, &word, 8) != TSUMUGI_ERROR_RANGE) {
        REFUSES(TSUMUGI_ERROR_RANGE, "", tsumugi_window_flush(window, rank));
    }
    REFUSES(TSUMUGI_ERROR_RANK, none_such, tsumugi_window_get(window, size, 0, &word, 8));
    REFUSES(TSUMUGI_ERROR_RANGE, "", tsumugi_window_get(window, rank, BYTES - 4, &word, 8));
    REFUSES(TSUMUGI_ERROR_UNALIGNED, "",
            tsumugi_window_atomic8(window, TSUMUGI_ATOMIC_ADD, rank, 4, 1, NULL));
    REFUSES(TSUMUGI_ERROR_VALUE, "11", tsumugi_window_atomic8(window, 11, rank, 0, 1, NULL));
    REFUSES(TSUMUGI_ERROR_RANK, none_such,
            tsumugi_window_compare_swap8(window, size, 0, 1, 1, NULL));
    REFUSES(TSUMUGI_ERROR_RANK, none_such, tsumugi_window_flush(window, size));
    REFUSES(TSUMUGI_ERROR_RANK, none_such,
            tsumugi_window_lock(window, size, TSUMUGI_SHARED, &hold));
    REFUSES(TSUMUGI_ERROR_VALUE, "5", tsumugi_window_lock(window, rank, 5, &hold));
    REFUSES(TSUMUGI_ERROR_RANK, none_such, tsumugi_window_post(window, &size, 1, &exposure));
    REFUSES(TSUMUGI_ERROR_RANK, none_such, tsumugi_window_start(window, &size, 1, &epoch));
    REFUSES(TSUMUGI_ERROR_NULL, "origins", tsumugi_window_post(window, NULL, 1, &exposure));
    REFUSES(TSUMUGI_ERROR_NULL, "targets", tsumugi_window_start(window, NULL, 1, &epoch));
    REFUSES(TSUMUGI_ERROR_NULL, "from", tsumugi_window_put(window, rank, 0, NULL, 8));
    REFUSES(TSUMUGI_ERROR_NULL, "into", tsumugi_window_get(window, rank, 0, NULL, 8));
    REFUSES(TSUMUGI_ERROR_NULL, "own", tsumugi_window_memory(window, NULL));
    REFUSES(TSUMUGI_ERROR_NULL, "window", tsumugi_window_memory(NULL, &memory));
    REFUSES(TSUMUGI_ERROR_NULL, "window", tsumugi_window_fence(NULL));
    REFUSES(TSUMUGI_ERROR_NULL, "window", tsumugi_window_flush_all(NULL));
    REFUSES(TSUMUGI_ERROR_NULL, "window", tsumugi_window_destroy(NULL));
    REFUSES(TSUMUGI_ERROR_NULL, "out", tsumugi_window_lock_all(window, NULL));
    REFUSES(TSUMUGI_ERROR_NULL, "out", tsumugi_window_unchecked(window, NULL));
    REFUSES(TSUMUGI_ERROR_NULL, "hold", tsumugi_hold_release(NULL));
    REFUSES(TSUMUGI_ERROR_NULL, "epoch", tsumugi_epoch_complete(NULL));
    REFUSES(TSUMUGI_ERROR_NULL, "exposure", tsumugi_exposure_test(NULL, &is));
    OK(tsumugi_barrier(job));
}

static void the_heap_has_memory_of_any_rank(void)
{
    struct tsumugi_heap *heap;
    tsumugi_addr block, zeroes, all[RANKS_MAX];
    uint64_t word = 0;
    uint32_t whose;
    char none_such[32];
    snprintf(none_such, sizeof none_such, "rank %u", size);
    OK(tsumugi_heap_create(job, 1 << 20, &heap));
    OK(tsumugi_heap_malloc(heap, next, 100, &block));
    OK(tsumugi_addr_rank(job, block, &whose));
    CHECK(whose == next);
    word = 1000 + rank;
    OK(tsumugi_put(job, block, &word, 8));
    OK(tsumugi_heap_calloc(heap, next, 500, 8, &zeroes));
    for (int n = 0; n < 500; n += 31) {
        OK(tsumugi_get(job, &word, zeroes + 8 * n, 8));
        CHECK(word == 0);
    }
    /* A rank that has made no block frees it. */
    OK(tsumugi_gather(job, block, all));
    OK(tsumugi_get(job, &word, all[before], 8));
    CHECK(word == 1000 + before);
    OK(tsumugi_heap_free(heap, all[before]));
    OK(tsumugi_heap_free(heap, zeroes));
    OK(tsumugi_heap_free(heap, TSUMUGI_ADDR_NULL));
    OK(tsumugi_barrier(job));
    REFUSES(TSUMUGI_ERROR_VALUE, "", tsumugi_heap_free(heap, block));
    REFUSES(TSUMUGI_ERROR_RANK, none_such, tsumugi_heap_malloc(heap, size, 8, &block));
    REFUSES(TSUMUGI_ERROR_LENGTH, "has 4096 bytes", tsumugi_heap_malloc(heap, rank, 4097, &block));
    struct tsumugi_heap *longer;
    OK(tsumugi_heap_create(job, 2 << 20, &longer));
    OK(tsumugi_heap_malloc(longer, rank, 256 << 10, &zeroes));
    OK(tsumugi_heap_free(longer, zeroes));
    REFUSES(TSUMUGI_ERROR_LENGTH, "has 262144 bytes",
            tsumugi_heap_malloc(longer, rank, (256 << 10) + 1, &zeroes));
    OK(tsumugi_barrier(job));
    OK(tsumugi_heap_destroy(longer));
    REFUSES(TSUMUGI_ERROR_LENGTH, "times", tsumugi_heap_calloc(heap, rank, 1ull << 40, 1ull << 40, &block));
    REFUSES(TSUMUGI_ERROR_NULL, "job", tsumugi_heap_create(NULL, 8, &heap));
    REFUSES(TSUMUGI_ERROR_NULL, "out", tsumugi_heap_create(job, 8, NULL));
    REFUSES(TSUMUGI_ERROR_NULL, "heap", tsumugi_heap_malloc(NULL, 0, 8, &block));
    REFUSES(TSUMUGI_ERROR_NULL, "out", tsumugi_heap_malloc(heap, 0, 8, NULL));
    REFUSES(TSUMUGI_ERROR_NULL, "out", tsumugi_heap_calloc(heap, 0, 8, 8, NULL));
    REFUSES(TSUMUGI_ERROR_NULL, "heap", tsumugi_heap_free(NULL, block));
    REFUSES(TSUMUGI_ERROR_NULL, "heap", tsumugi_heap_destroy(NULL));
    OK(tsumugi_barrier(job));
    OK(tsumugi_heap_destroy(heap));
    REFUSES(TSUMUGI_ERROR_ENDED, "the heap at", tsumugi_heap_malloc(heap, 0, 8, &block));
    REFUSES(TSUMUGI_ERROR_ENDED, "the heap at", tsumugi_heap_destroy(heap));
}

static void play(void)
{
    for (int design = TSUMUGI_WINDOW_DEFAULT; design <= TSUMUGI_WINDOW_TWO_LEVEL; design++) {
        OK(tsumugi_window_create(job, BYTES, design, &window));
        puts_land_by_the_fence();
        epochs_order_accesses();
        holds_exclude_each_other(design);
        if (design == TSUMUGI_WINDOW_DEFAULT) {
            ends_may_overlap();
            wrong_values_are_refused();
        }
        OK(tsumugi_window_destroy(window));
        REFUSES(TSUMUGI_ERROR_ENDED, "the window at", tsumugi_window_fence(window));
        REFUSES(TSUMUGI_ERROR_ENDED, "the window at", tsumugi_window_destroy(window));
    }
    the_heap_has_memory_of_any_rank();
}
