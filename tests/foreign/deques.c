/* Deques of work: each item is taken once, by its rank or by a thief. */
#include "rank.h"

enum { ITEMS = 1000, ODD = 13 };

struct item {
    uint32_t owner, number;
    char more[5];
};

static struct tsumugi_deque *deque;
static struct tsumugi_region *counts;
static tsumugi_addr all[RANKS_MAX];

/* Counts an item as taken, at its rank. */
static void take(const struct item *item)
{
    uint64_t before_it;
    CHECK(item->owner < size && item->number < ITEMS && item->more[4] == (char)item->number);
    OK(tsumugi_atomic8(job, TSUMUGI_ATOMIC_ADD, all[item->owner] + 8 * item->number, 1, &before_it));
    CHECK(before_it == 0);
}

static void *steals(void *unused)
{
    struct item item;
    bool is_taken, any = true;
    while (any) {
        any = false;
        for (uint32_t of = 0; of < size; of++) {
            OK(tsumugi_deque_steal(deque, of, &item, &is_taken));
            if (is_taken) take(&item);
            any |= is_taken;
        }
        tsumugi_yield();
    }
    return unused;
}

static void each_item_is_taken_once(void)
{
    struct tsumugi_ult *thief;
    struct item item, taken;
    bool is_added, is_taken;
    size_t left;
    OK(tsumugi_deque_create(job, 100, sizeof item, &deque));
    OK(tsumugi_expose(job, 8 * ITEMS, TSUMUGI_AGENT_CPU, &counts));
    OK(tsumugi_gather(job, tsumugi_region_addr(counts), all));
    OK(tsumugi_spawn(tsumugi_workers(job), NULL, steals, NULL, &thief));
    for (uint32_t number = 0; number < ITEMS; number++) {
        item = (struct item){.owner = rank, .number = number, .more = {0, 0, 0, 0, (char)number}};
        for (is_added = false; !is_added;) {
            OK(tsumugi_deque_push(deque, &item, &is_added));
            if (is_added) break;
            OK(tsumugi_deque_pop(deque, &taken, &is_taken));
            if (is_taken) take(&taken);
        }
    }
    OK(tsumugi_join(thief, NULL));
    OK(tsumugi_barrier(job));
    steals(NULL);
    for (is_taken = true; is_taken;) {
        OK(tsumugi_deque_pop(deque, &taken, &is_taken));
        if (is_taken) take(&taken);
    }
    OK(tsumugi_barrier(job));
    OK(tsumugi_deque_count(deque, &left));
    CHECK(left == 0);
    uint64_t *mine = tsumugi_region_memory(counts);
    for (int n = 0; n < ITEMS; n++) CHECK(mine[n] == 1);
    OK(tsumugi_barrier(job));
    OK(tsumugi_deque_destroy(deque));
    REFUSES(TSUMUGI_ERROR_ENDED, "the deque at", tsumugi_deque_count(deque, &left));
    OK(tsumugi_unregister(job, counts));
}

static void the_ends_of_a_full_deque(void)
{
    char item[ODD], taken[ODD];
    bool is;
    size_t count;
    OK(tsumugi_deque_create(job, 3, ODD, &deque));
    for (int n = 0; n < 5; n++) {
        memset(item, (int)(10 * rank) + n, ODD);
        OK(tsumugi_deque_push(deque, item, &is));
        CHECK(is == (n < 4));
    }
    OK(tsumugi_barrier(job));
    OK(tsumugi_deque_steal(deque, next, taken, &is));
    CHECK(is && taken[0] == (char)(10 * next) && taken[ODD - 1] == (char)(10 * next));
    OK(tsumugi_barrier(job));
    OK(tsumugi_deque_pop(deque, taken, &is));
    CHECK(is && taken[ODD - 1] == (char)(10 * rank + 3));
    OK(tsumugi_deque_count(deque, &count));
    CHECK(count == 2);
    char none_such[32];
    snprintf(none_such, sizeof none_such, "rank %u", size);
    REFUSES(TSUMUGI_ERROR_RANK, none_such, tsumugi_deque_steal(deque, size, taken, &is));
    REFUSES(TSUMUGI_ERROR_NULL, "item", tsumugi_deque_push(deque, NULL, &is));
    REFUSES(TSUMUGI_ERROR_NULL, "is_added", tsumugi_deque_push(deque, item, NULL));
    REFUSES(TSUMUGI_ERROR_NULL, "into", tsumugi_deque_pop(deque, NULL, &is));
    REFUSES(TSUMUGI_ERROR_NULL, "is_taken", tsumugi_deque_pop(deque, taken, NULL));
    REFUSES(TSUMUGI_ERROR_NULL, "into", tsumugi_deque_steal(deque, 0, NULL, &is));
    REFUSES(TSUMUGI_ERROR_NULL, "deque", tsumugi_deque_steal(NULL, 0, taken, &is));
    REFUSES(TSUMUGI_ERROR_NULL, "count", tsumugi_deque_count(deque, NULL));
    REFUSES(TSUMUGI_ERROR_NULL, "deque", tsumugi_deque_destroy(NULL));
    struct tsumugi_deque *none;
    REFUSES(TSUMUGI_ERROR_NULL, "job", tsumugi_deque_create(NULL, 1, 1, &none));
    REFUSES(TSUMUGI_ERROR_NULL, "out", tsumugi_deque_create(job, 1, 1, NULL));
    REFUSES(TSUMUGI_ERROR_VALUE, "0 items", tsumugi_deque_create(job, 0, 1, &none));
    REFUSES(TSUMUGI_ERROR_VALUE, "items", tsumugi_deque_create(job, SIZE_MAX, 1, &none));
    OK(tsumugi_barrier(job));
    OK(tsumugi_deque_destroy(deque));
    REFUSES(TSUMUGI_ERROR_ENDED, "the deque at", tsumugi_deque_destroy(deque));
}

static void play(void)
{
    each_item_is_taken_once();
    the_ends_of_a_full_deque();
}
