/* Tasks of another scheduler: they and ULTs of tsumugi take the same lock, and wait for
 * each other. */
#ifndef TASKS_H
#define TASKS_H

#include "check.h"

enum { TASKS = 64, ROUNDS = 20 };

static struct tsumugi_scheduler *ults;
static struct tsumugi_mutex *mutex;
static struct tsumugi_condvar *changed;
static unsigned long count, turn;

static void *add_one(void *number)
{
    OK(tsumugi_mutex_lock(mutex));
    unsigned long before = count;
    tsumugi_yield();
    count = before + 1;
    OK(tsumugi_mutex_unlock(mutex));
    return number;
}

/* In each round, a ULT of tsumugi and this task take the same lock. At the end the task
 * sleeps for a while. */
static void share_lock(void)
{
    for (uintptr_t round = 0; round < ROUNDS; round++) {
        struct tsumugi_ult *ult;
        void *value;
        OK(tsumugi_spawn(ults, NULL, add_one, (void *)round, &ult));
        add_one(NULL);
        OK(tsumugi_join(ult, &value));
        CHECK((uintptr_t)value == round);
    }
    CHECK(tsumugi_sleep_within(100000, false) == TSUMUGI_ERROR_TIMED_OUT);
}

static void begin_sharing(const struct tsumugi_wait *wait,
                          struct tsumugi_registration **registration)
{
    struct tsumugi_config config = {.size = sizeof config, .workers = 1};
    OK(tsumugi_wait_register(wait, registration));
    OK(tsumugi_scheduler_create(&config, &ults));
    OK(tsumugi_scheduler_start(ults));
    OK(tsumugi_mutex_create(&mutex));
    OK(tsumugi_condvar_create(&changed));
}

static void end_sharing(struct tsumugi_registration *registration)
{
    CHECK(count == 2ul * TASKS * ROUNDS);
    tsumugi_condvar_destroy(changed);
    tsumugi_mutex_destroy(mutex);
    tsumugi_scheduler_destroy(ults);
    tsumugi_wait_unregister(registration);
}

#endif
