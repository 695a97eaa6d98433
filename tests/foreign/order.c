/* Child first: on one worker, a child runs before its parent goes on, at every spawn; on
 * two workers, both run at once, and each computes until the other one has moved on.
 * tests/capi.rs here compiles and runs it. */

#include "check.h"

#include <sched.h>
#include <stdatomic.h>
#include <time.h>

enum { ROUNDS = 20000, LIMIT_SECONDS = 60 };

static atomic_int child, parent;

/* Yields the processor to other OS threads, and does not yield the worker. */
static void compute_until(atomic_int *count, int reached)
{
    time_t started = time(NULL);
    while (atomic_load(count) < reached) {
        CHECK(time(NULL) - started < LIMIT_SECONDS);
        sched_yield();
    }
}

static void *go_first(void *round)
{
    atomic_store(&child, (int)(intptr_t)round);
    compute_until(&parent, (int)(intptr_t)round);
    return NULL;
}

static void *count_up(void *argument)
{
    (void)argument;
    atomic_fetch_add(&child, 1);
    return NULL;
}

static const struct tsumugi_particulars child_first = {
    .size = sizeof child_first,
    .flags = TSUMUGI_SPAWN_CHILD_FIRST,
};

static void *beside(void *argument)
{
    (void)argument;
    for (int round = 1; round <= ROUNDS; round++) {
        struct tsumugi_ult *ult;
        OK(tsumugi_spawn(NULL, &child_first, go_first, (void *)(intptr_t)round, &ult));
        compute_until(&child, round);
        atomic_store(&parent, round);
        OK(tsumugi_join(ult, NULL));
    }
    return NULL;
}

static void *at_once(void *argument)
{
    (void)argument;
    for (int round = 1; round <= ROUNDS; round++) {
        OK(tsumugi_spawn(NULL, &child_first, count_up, NULL, NULL));
        CHECK(atomic_load(&child) == round);
    }
    return NULL;
}

static void run(size_t workers, void *(*body)(void *))
{
    struct tsumugi_scheduler *scheduler = NULL;
    struct tsumugi_config config = {
        .size = sizeof config,
        .workers = workers,
        .main_stack_bytes = 256 << 10,
    };
    atomic_store(&child, 0);
    OK(tsumugi_scheduler_create(&config, &scheduler));
    OK(tsumugi_scheduler_run(scheduler, body, NULL, NULL));
    tsumugi_scheduler_destroy(scheduler);
}

int main(void)
{
    run(1, at_once);
    run(2, beside);
    printf("all is well\n");
    return 0;
}
