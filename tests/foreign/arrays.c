/* Arrays: elements of several sizes, atomics, pages that move, checkouts. */
#include "rank.h"

enum { LEN = 3000 };

static struct tsumugi_array *array_of(size_t element_bytes, uint32_t first, uint32_t directory)
{
    struct tsumugi_array *array;
    struct tsumugi_array_options options = {
        .size = sizeof options, .len = LEN, .element_bytes = element_bytes, .page_len = 100,
        .first = first, .directory = directory,
    };
    OK(tsumugi_array_create(job, &options, &array));
    return array;
}

static void elements_of_any_size(size_t bytes, uint32_t first, uint32_t directory)
{
    static char data[LEN * 24 + 1], found[LEN * 24 + 1];
    struct tsumugi_array *array = array_of(bytes, first, directory);
    size_t own = LEN / size * rank, count = LEN / size, moved;
    for (size_t n = 0; n < LEN * bytes; n++) data[1 + n] = (char)(n % 97);
    /* From an address that is not aligned. */
    OK(tsumugi_array_put(array, own, data + 1 + own * bytes, count));
    OK(tsumugi_array_put(array, own, data + 1 + own * bytes, 1));
    OK(tsumugi_barrier(job));
    OK(tsumugi_array_get(array, 0, found, count * size));
    CHECK(memcmp(found, data + 1, count * size * bytes) == 0);
    OK(tsumugi_array_get(array, 0, found + 1, count * size));
    CHECK(memcmp(found + 1, data + 1, count * size * bytes) == 0);
    OK(tsumugi_array_get(array, own, found, 1));
    CHECK(memcmp(found, data + 1 + own * bytes, bytes) == 0);
    /* The pages of the next rank come here. */
    size_t theirs = LEN / size * next;
    uint32_t owner;
    OK(tsumugi_array_own(array, theirs + 100, 200, &moved));
    OK(tsumugi_array_owner(array, theirs + 200, &owner));
    CHECK(owner == rank && moved <= 3);
    OK(tsumugi_array_own(array, theirs + 100, 200, &moved));
    CHECK(moved <= 1);
    OK(tsumugi_array_get(array, theirs + 100, found, 200));
    CHECK(memcmp(found, data + 1 + (theirs + 100) * bytes, 200 * bytes) == 0);
    OK(tsumugi_barrier(job));
    OK(tsumugi_array_return_home(array));
    OK(tsumugi_array_get(array, theirs, found, count));
    CHECK(memcmp(found, data + 1 + theirs * bytes, count * bytes) == 0);
    OK(tsumugi_array_get(array, LEN, NULL, 0));
    OK(tsumugi_array_put(array, LEN, NULL, 0));
    /* Each rank writes a row of a list, and reads that of the next one. */
    enum { LIST = 50 };
    size_t indices[LIST];
    for (size_t n = 0; n < LIST; n++) indices[n] = n * 60 + rank;
    OK(tsumugi_barrier(job));
    for (int at = 0; at < 2; at++) {
        for (size_t n = 0; n < LIST * bytes; n++) found[at + n] = (char)(n + rank + (size_t)at);
        OK(tsumugi_array_scatter(array, indices, LIST, found + at));
        OK(tsumugi_barrier(job));
        size_t others[LIST];
        for (size_t n = 0; n < LIST; n++) others[n] = n * 60 + next;
        OK(tsumugi_array_gather(array, others, LIST, found + at));
        for (size_t n = 0; n < LIST * bytes; n++) {
            CHECK(found[at + n] == (char)(n + next + (size_t)at));
        }
        OK(tsumugi_barrier(job));
    }
    OK(tsumugi_barrier(job));
    OK(tsumugi_array_destroy(array));
    REFUSES(TSUMUGI_ERROR_ENDED, "the array at", tsumugi_array_get(array, 0, found, 1));
    REFUSES(TSUMUGI_ERROR_ENDED, "the array at", tsumugi_array_destroy(array));
}

static void atomics_change_elements(void)
{
    struct tsumugi_array *eights = array_of(8, TSUMUGI_ARRAY_CYCLIC, TSUMUGI_ARRAY_ATOMICS);
    struct tsumugi_array *fours = array_of(4, TSUMUGI_ARRAY_BLOCK, TSUMUGI_ARRAY_DEVICE);
    uint64_t old, word;
    uint32_t old4;
    for (int n = 0; n < 100; n++) {
        OK(tsumugi_array_atomic8(eights, TSUMUGI_ATOMIC_ADD, 1000, 1, &old));
        OK(tsumugi_array_atomic4(fours, TSUMUGI_ATOMIC_ADD, 2000, 1, NULL));
    }
    OK(tsumugi_barrier(job));
    OK(tsumugi_array_get(eights, 1000, &word, 1));
    CHECK(word == 100 * size);
    OK(tsumugi_array_atomic4(fours, TSUMUGI_ATOMIC_OR, 2000, 0, &old4));
    CHECK(old4 == 100 * size);
    OK(tsumugi_array_atomic8(eights, TSUMUGI_ATOMIC_SWAP, rank, 6, &old));
    OK(tsumugi_array_atomic8(eights, TSUMUGI_ATOMIC_XOR, rank, 5, &old));
    CHECK(old == 6);
    OK(tsumugi_array_atomic8(eights, TSUMUGI_ATOMIC_AND, rank, 1, &old));
    CHECK(old == 3);
    OK(tsumugi_array_compare_swap8(eights, rank, 1, 9, &old));
    CHECK(old == 1);
    OK(tsumugi_array_compare_swap4(fours, rank, 0, 5, &old4));
    OK(tsumugi_array_compare_swap4(fours, rank, 5, 6, NULL));
    OK(tsumugi_array_compare_swap4(fours, rank, 5, 7, &old4));
    CHECK(old4 == 6);
    REFUSES(TSUMUGI_ERROR_VALUE, "9", tsumugi_array_atomic8(eights, 9, 0, 1, NULL));
    REFUSES(TSUMUGI_ERROR_VALUE, "4 bytes", tsumugi_array_atomic8(fours, 0, 0, 1, NULL));
    REFUSES(TSUMUGI_ERROR_VALUE, "8 bytes", tsumugi_array_atomic4(eights, 0, 0, 1, NULL));
    REFUSES(TSUMUGI_ERROR_VALUE, "4 bytes", tsumugi_array_compare_swap8(fours, 0, 0, 1, NULL));
    REFUSES(TSUMUGI_ERROR_VALUE, "8 bytes", tsumugi_array_compare_swap4(eights, 0, 0, 1, NULL));
    REFUSES(TSUMUGI_ERROR_RANGE, "3000", tsumugi_array_atomic8(eights, 0, LEN, 1, NULL));
    OK(tsumugi_barrier(job));
    OK(tsumugi_array_destroy(eights));
    OK(tsumugi_array_destroy(fours));
}

static void checkouts_are_plain_memory(void)
{
    struct tsumugi_array *array = array_of(16, TSUMUGI_ARRAY_BLOCK, TSUMUGI_ARRAY_ATOMICS);
    struct tsumugi_checkout *checkout, *other;
    size_t count = LEN / size, own = count * rank;
    void *memory, *same;
    OK(tsumugi_array_checkout(array, own, count, TSUMUGI_CHECKOUT_WRITE, &memory, &checkout));
    for (size_t n = 0; n < count; n++) ((uint64_t *)memory)[2 * n] = own + n;
    for (size_t n = 0; n < count; n++) ((uint64_t *)memory)[2 * n + 1] = rank;
    REFUSES(TSUMUGI_ERROR_HELD, "checked out",
            tsumugi_array_checkout(array, own, 1, TSUMUGI_CHECKOUT_READ, &same, &other));
    OK(tsumugi_checkin(checkout));
    REFUSES(TSUMUGI_ERROR_ENDED, "the checkout at", tsumugi_checkin(checkout));
    OK(tsumugi_array_fence(array));
    OK(tsumugi_array_checkout(array, 0, count * size, TSUMUGI_CHECKOUT_READ, &memory, &checkout));
    for (size_t n = 0; n < count * size; n++) {
        CHECK(((uint64_t *)memory)[2 * n] == n && ((uint64_t *)memory)[2 * n + 1] == n / count);
    }
    OK(tsumugi_checkin(checkout));
    OK(tsumugi_barrier(job));
    OK(tsumugi_array_checkout(array, own, 1, TSUMUGI_CHECKOUT_READ_WRITE, &memory, &checkout));
    *(uint64_t *)memory += 1000000;
    OK(tsumugi_checkin(checkout));
    OK(tsumugi_array_release(array));
    OK(tsumugi_barrier(job));
    OK(tsumugi_array_acquire(array));
    uint64_t pair[2];
    OK(tsumugi_array_get(array, count * next, pair, 1));
    CHECK(pair[0] == count * next + 1000000 && pair[1] == next);
    REFUSES(TSUMUGI_ERROR_RANGE, "3000",
            tsumugi_array_checkout(array, LEN, 1, TSUMUGI_CHECKOUT_READ, &memory, &checkout));
    REFUSES(TSUMUGI_ERROR_VALUE, "3", tsumugi_array_checkout(array, 0, 1, 3, &memory, &checkout));
    REFUSES(TSUMUGI_ERROR_NULL, "elements", tsumugi_array_checkout(array, 0, 1, 0, NULL, &checkout));
    REFUSES(TSUMUGI_ERROR_NULL, "out", tsumugi_array_checkout(array, 0, 1, 0, &memory, NULL));
    REFUSES(TSUMUGI_ERROR_NULL, "checkout", tsumugi_checkin(NULL));
    OK(tsumugi_barrier(job));
    OK(tsumugi_array_destroy(array));
}

static void wrong_values_are_refused(void)
{
    struct tsumugi_array *array = array_of(8, TSUMUGI_ARRAY_BLOCK, TSUMUGI_ARRAY_ATOMICS), *none;
    struct tsumugi_array_options options = {.size = sizeof options, .len = 10, .element_bytes = 8};
    uint64_t word = 0;
    uint32_t owner;
    REFUSES(TSUMUGI_ERROR_NULL, "job", tsumugi_array_create(NULL, &options, &none));
    REFUSES(TSUMUGI_ERROR_NULL, "options", tsumugi_array_create(job, NULL, &none));
    REFUSES(TSUMUGI_ERROR_NULL, "out", tsumugi_array_create(job, &options, NULL));
    options.first = 7;
    REFUSES(TSUMUGI_ERROR_VALUE, "7", tsumugi_array_create(job, &options, &none));
    options.first = 0, options.directory = 8;
    REFUSES(TSUMUGI_ERROR_VALUE, "8", tsumugi_array_create(job, &options, &none));
    options.directory = 0, options.element_bytes = 0;
    REFUSES(TSUMUGI_ERROR_VALUE, "0", tsumugi_array_create(job, &options, &none));
    options.element_bytes = 8, options.len = 0;
    ANSWERS(TSUMUGI_ERROR_VALUE, tsumugi_array_create(job, &options, &none));
    options.element_bytes = 24, options.len = SIZE_MAX;
    REFUSES(TSUMUGI_ERROR_LENGTH, "24", tsumugi_array_create(job, &options, &none));
    options.size = 4;
    ANSWERS(TSUMUGI_ERROR_SIZE, tsumugi_array_create(job, &options, &none));
    REFUSES(TSUMUGI_ERROR_RANGE, "3000", tsumugi_array_get(array, LEN, &word, 1));
    REFUSES(TSUMUGI_ERROR_RANGE, "3000", tsumugi_array_put(array, SIZE_MAX, &word, 1));
    REFUSES(TSUMUGI_ERROR_RANGE, "3000", tsumugi_array_own(array, LEN, 1, NULL));
    REFUSES(TSUMUGI_ERROR_RANGE, "3000", tsumugi_array_owner(array, LEN, &owner));
    REFUSES(TSUMUGI_ERROR_NULL, "array", tsumugi_array_get(NULL, 0, &word, 1));
    REFUSES(TSUMUGI_ERROR_NULL, "into", tsumugi_array_get(array, 0, NULL, 1));
    REFUSES(TSUMUGI_ERROR_NULL, "from", tsumugi_array_put(array, 0, NULL, 1));
    REFUSES(TSUMUGI_ERROR_NULL, "owner", tsumugi_array_owner(array, 0, NULL));
    size_t beyond[2] = {0, LEN};
    uint64_t two[2] = {1, 2};
    REFUSES(TSUMUGI_ERROR_RANGE, "3000", tsumugi_array_scatter(array, beyond, 2, two));
    REFUSES(TSUMUGI_ERROR_RANGE, "3000", tsumugi_array_gather(array, beyond, 2, two));
    REFUSES(TSUMUGI_ERROR_NULL, "indices", tsumugi_array_gather(array, NULL, 2, two));
    REFUSES(TSUMUGI_ERROR_NULL, "into", tsumugi_array_gather(array, beyond, 1, NULL));
    REFUSES(TSUMUGI_ERROR_NULL, "from", tsumugi_array_scatter(array, beyond, 1, NULL));
    OK(tsumugi_array_gather(array, NULL, 0, NULL));
    OK(tsumugi_array_scatter(array, NULL, 0, NULL));
    REFUSES(TSUMUGI_ERROR_NULL, "array", tsumugi_array_own(NULL, 0, 1, NULL));
    REFUSES(TSUMUGI_ERROR_NULL, "array", tsumugi_array_return_home(NULL));
    REFUSES(TSUMUGI_ERROR_NULL, "array", tsumugi_array_fence(NULL));
    REFUSES(TSUMUGI_ERROR_NULL, "array", tsumugi_array_release(NULL));
    REFUSES(TSUMUGI_ERROR_NULL, "array", tsumugi_array_acquire(NULL));
    OK(tsumugi_barrier(job));
    OK(tsumugi_array_destroy(array));
}

static void play(void)
{
    size_t sizes[] = {1, 2, 3, 4, 8, 12, 24};
    for (int n = 0; n < 7; n++) {
        elements_of_any_size(sizes[n], TSUMUGI_ARRAY_BLOCK, TSUMUGI_ARRAY_ATOMICS);
    }
    elements_of_any_size(8, TSUMUGI_ARRAY_CYCLIC, TSUMUGI_ARRAY_MESSAGES);
    atomics_change_elements();
    checkouts_are_plain_memory();
    wrong_values_are_refused();
}
