/* All calls that a C program can make on ULTs, and tasks on pthreads that sleep through
 * functions of the program. tests/capi.rs here compiles and runs it. */

#include "check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { ULTS = 1000, PARKED = 100, TASKS = 8, ROUNDS = 50 };

static const uint64_t MS = 1000000;

static struct tsumugi_scheduler *two_workers(void)
{
    struct tsumugi_scheduler *scheduler = NULL;
    struct tsumugi_config config = {
        .size = sizeof config,
        .workers = 2,
        .main_stack_bytes = 256 << 10,
    };
    OK(tsumugi_scheduler_create(&config, &scheduler));
    CHECK(scheduler != NULL);
    return scheduler;
}

/* ULTs that return values. */

static void *plus_one(void *number)
{
    struct tsumugi_id own;
    OK(tsumugi_self(&own));
    tsumugi_yield();
    return (void *)((uintptr_t)number + 1);
}

static void a_thousand_answer(void)
{
    static struct tsumugi_ult *ults[ULTS];
    uintptr_t sum = 0;
    for (uintptr_t n = 0; n < ULTS; n++) {
        OK(tsumugi_spawn(NULL, NULL, plus_one, (void *)n, &ults[n]));
    }
    for (uintptr_t n = 0; n < ULTS; n++) {
        void *value = NULL;
        OK(tsumugi_join(ults[n], &value));
        CHECK((uintptr_t)value == n + 1);
        sum += (uintptr_t)value;
    }
    CHECK(sum == (uintptr_t)ULTS * (ULTS + 1) / 2);
}

/* ULTs that park, and a pthread that unparks them. */

static struct {
    _Atomic(struct tsumugi_unparker *) unparkers[PARKED];
    atomic_int unparked;
} parked;

static void *park_here(void *place)
{
    struct tsumugi_unparker *own;
    OK(tsumugi_unparker_create(&own));
    atomic_store(&parked.unparkers[(uintptr_t)place], own);
    tsumugi_park();
    atomic_fetch_add(&parked.unparked, 1);
    return NULL;
}

static void *unpark_all(void *unused)
{
    (void)unused;
    for (int n = 0; n < PARKED; n++) {
        struct tsumugi_unparker *unparker;
        while ((unparker = atomic_load(&parked.unparkers[n])) == NULL) {
            tsumugi_yield();
        }
        OK(tsumugi_unpark(unparker));
        tsumugi_unparker_destroy(unparker);
    }
    return NULL;
}

static void a_pthread_unparks(void)
{
    struct tsumugi_ult *ults[PARKED];
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, unpark_all, NULL) == 0);
    for (uintptr_t n = 0; n < PARKED; n++) {
        OK(tsumugi_spawn(NULL, NULL, park_here, (void *)n, &ults[n]));
    }
    for (int n = 0; n < PARKED; n++) {
        OK(tsumugi_join(ults[n], NULL));
    }
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(atomic_load(&parked.unparked) == PARKED);
    ANSWERS(TSUMUGI_ERROR_TIMED_OUT, tsumugi_park_within(MS, false));
}

/* ULTs that take turns in order, by a mutex and a condition variable. */

static struct {
    struct tsumugi_mutex *mutex;
    struct tsumugi_condvar *changed;
    uintptr_t now;
} turn;

static void *take_turn(void *mine)
{
    OK(tsumugi_mutex_lock(turn.mutex));
    while (turn.now != (uintptr_t)mine) {
        OK(tsumugi_condvar_wait(turn.changed, turn.mutex));
    }
    ANSWERS(TSUMUGI_ERROR_BUSY, tsumugi_mutex_try_lock(turn.mutex));
    turn.now++;
    OK(tsumugi_condvar_notify_all(turn.changed));
    OK(tsumugi_mutex_unlock(turn.mutex));
    return NULL;
}

static void turns_are_taken(void)
{
    struct tsumugi_ult *ults[PARKED];
    OK(tsumugi_mutex_create(&turn.mutex));
    OK(tsumugi_condvar_create(&turn.changed));
    for (uintptr_t n = 0; n < PARKED; n++) {
        OK(tsumugi_spawn(NULL, NULL, take_turn, (void *)(PARKED - 1 - n), &ults[n]));
    }
    for (int n = 0; n < PARKED; n++) {
        OK(tsumugi_join(ults[n], NULL));
    }
    CHECK(turn.now == PARKED);
    ANSWERS(TSUMUGI_ERROR_NOT_LOCKED, tsumugi_mutex_unlock(turn.mutex));
    OK(tsumugi_mutex_lock_within(turn.mutex, MS, true));
    ANSWERS(TSUMUGI_ERROR_TIMED_OUT,
            tsumugi_condvar_wait_within(turn.changed, turn.mutex, MS, false));
    OK(tsumugi_mutex_unlock(turn.mutex));
    tsumugi_condvar_destroy(turn.changed);
    tsumugi_mutex_destroy(turn.mutex);
}

/* ULT-local values. */

static struct tsumugi_key *key;
static atomic_uint destroyed;

static void destroy(void *value)
{
    atomic_fetch_add(&destroyed, *(unsigned *)value);
    free(value);
}

static void *have_own(void *number)
{
    unsigned *own = malloc(sizeof *own);
    CHECK(own != NULL);
    CHECK(tsumugi_key_get(key) == NULL);
    *own = (unsigned)(uintptr_t)number;
    OK(tsumugi_key_set(key, own));
    tsumugi_yield();
    CHECK(tsumugi_key_get(key) == own);
    return NULL;
}

static void each_has_its_own(void)
{
    struct tsumugi_ult *ults[10];
    OK(tsumugi_key_create(destroy, &key));
    for (uintptr_t n = 0; n < 10; n++) {
        OK(tsumugi_spawn(NULL, NULL, have_own, (void *)n, &ults[n]));
    }
    for (int n = 0; n < 10; n++) {
        OK(tsumugi_join(ults[n], NULL));
    }
    CHECK(atomic_load(&destroyed) == 45);
    tsumugi_key_destroy(key);
}

/* Limits and cancellation. */

static void *sleep_on(void *unused)
{
    (void)unused;
    ANSWERS(TSUMUGI_ERROR_CANCELLED, tsumugi_sleep_within(TSUMUGI_FOREVER, true));
    CHECK(tsumugi_is_cancelled());
    return NULL;
}

static void sleepers_give_up(void)
{
    struct tsumugi_ult *sleeper;
    struct tsumugi_particulars particulars = {
        .size = sizeof particulars,
        .name = "sleeper",
        .stack_bytes = 128 << 10,
        .worker_plus_one = 1,
        .flags = TSUMUGI_SPAWN_URGENT,
    };
    struct tsumugi_id id;
    OK(tsumugi_spawn(NULL, &particulars, sleep_on, NULL, &sleeper));
    OK(tsumugi_id_of(sleeper, &id));
    ANSWERS(TSUMUGI_ERROR_TIMED_OUT, tsumugi_join_within(sleeper, MS, false, NULL));
    CHECK(!tsumugi_is_finished(sleeper));
    OK(tsumugi_yield_to(sleeper));
    OK(tsumugi_cancel(sleeper));
    OK(tsumugi_join(sleeper, NULL));
    particulars.worker_plus_one = 3;
    ANSWERS(TSUMUGI_ERROR_WORKER, tsumugi_spawn(NULL, &particulars, sleep_on, NULL, NULL));
    particulars.worker_plus_one = 0;
    particulars.flags = 8;
    ANSWERS(TSUMUGI_ERROR_FLAGS, tsumugi_spawn(NULL, &particulars, sleep_on, NULL, NULL));
    particulars.flags = 0;
    particulars.stack_bytes = (size_t)1 << 62;
    ANSWERS(TSUMUGI_ERROR_STACK, tsumugi_spawn(NULL, &particulars, sleep_on, NULL, NULL));
    particulars.stack_bytes = 0;
    particulars.name = "\xff";
    ANSWERS(TSUMUGI_ERROR_NAME, tsumugi_spawn(NULL, &particulars, sleep_on, NULL, NULL));
    ANSWERS(TSUMUGI_ERROR_NULL, tsumugi_spawn(NULL, NULL, NULL, NULL, NULL));
}

static void note_stack(void *where)
{
    char here;
    *(uintptr_t *)where = (uintptr_t)&here;
}

static void *everything(void *arg)
{
    uintptr_t os_stack = 0;
    a_thousand_answer();
    a_pthread_unparks();
    turns_are_taken();
    each_has_its_own();
    sleepers_give_up();
    OK(tsumugi_on_os_stack(note_stack, &os_stack));
    CHECK(os_stack > (uintptr_t)&os_stack + (64 << 10) ||
          os_stack < (uintptr_t)&os_stack - (256 << 10));
    return arg;
}

/* A foreign scheduler: each task is a pthread, which parks on a condition variable of
 * its own. The tasks block on ULTs of tsumugi. */

struct task {
    pthread_mutex_t mutex;
    pthread_cond_t bell;
    bool has_token;
    unsigned number;
};

struct foreign {
    atomic_uint parks, unparks;
};

static _Thread_local struct task *own_task;

static void *foreign_current(void *context)
{
    (void)context;
    return own_task;
}

static void foreign_park(void *context, void *name, uint64_t limit_ns)
{
    struct foreign *foreign = context;
    struct task *task = name;
    struct timespec until;
    int timed_out = 0;
    CHECK(task == own_task);
    atomic_fetch_add(&foreign->parks, 1);
    clock_gettime(CLOCK_REALTIME, &until);
    if (limit_ns != TSUMUGI_FOREVER) {
        uint64_t ns = (uint64_t)until.tv_nsec + limit_ns;
        until.tv_sec += (time_t)(ns / 1000000000);
        until.tv_nsec = (long)(ns % 1000000000);
    }
    pthread_mutex_lock(&task->mutex);
    while (!task->has_token && timed_out == 0) {
        if (limit_ns == TSUMUGI_FOREVER) {
            pthread_cond_wait(&task->bell, &task->mutex);
        } else {
            timed_out = pthread_cond_timedwait(&task->bell, &task->mutex, &until);
        }
    }
    task->has_token = false;
    pthread_mutex_unlock(&task->mutex);
}

static void foreign_unpark(void *context, void *name)
{
    struct foreign *foreign = context;
    struct task *task = name;
    atomic_fetch_add(&foreign->unparks, 1);
    pthread_mutex_lock(&task->mutex);
    task->has_token = true;
    pthread_cond_signal(&task->bell);
    pthread_mutex_unlock(&task->mutex);
}

static struct {
    struct tsumugi_scheduler *scheduler;
    struct tsumugi_mutex *mutex;
    unsigned long count;
} shared;

static void *sleep_a_little(void *number)
{
    tsumugi_sleep(MS / 10);
    return number;
}

static void *count_up(void *times)
{
    for (uintptr_t n = 0; n < (uintptr_t)times; n++) {
        OK(tsumugi_mutex_lock(shared.mutex));
        unsigned long before = shared.count;
        tsumugi_yield();
        shared.count = before + 1;
        OK(tsumugi_mutex_unlock(shared.mutex));
    }
    return NULL;
}

static void *unpark_one(void *unparker)
{
    OK(tsumugi_unpark(unparker));
    return NULL;
}

static void *be_a_task(void *name)
{
    own_task = name;
    for (uintptr_t round = 0; round < ROUNDS; round++) {
        struct tsumugi_ult *ult;
        void *value = NULL;
        OK(tsumugi_spawn(shared.scheduler, NULL, sleep_a_little, (void *)round, &ult));
        OK(tsumugi_join(ult, &value));
        CHECK((uintptr_t)value == round);
    }
    count_up((void *)(uintptr_t)ROUNDS);
    /* A task parks, and a ULT unparks it. */
    struct tsumugi_unparker *unparker;
    struct tsumugi_ult *ult;
    OK(tsumugi_unparker_create(&unparker));
    OK(tsumugi_spawn(shared.scheduler, NULL, unpark_one, unparker, &ult));
    tsumugi_park();
    OK(tsumugi_join(ult, NULL));
    tsumugi_unparker_destroy(unparker);
    ANSWERS(TSUMUGI_ERROR_TIMED_OUT, tsumugi_sleep_within(MS, false));
    own_task = NULL;
    return NULL;
}

static void foreign_tasks_block(void)
{
    static struct foreign foreign;
    struct task tasks[TASKS];
    pthread_t threads[TASKS];
    struct tsumugi_ult *counter;
    struct tsumugi_registration *registration;
    struct tsumugi_wait wait = {
        .size = sizeof wait,
        .context = &foreign,
        .current = foreign_current,
        .park = foreign_park,
        .unpark = foreign_unpark,
    };
    OK(tsumugi_wait_register(&wait, &registration));
    shared.scheduler = two_workers();
    OK(tsumugi_scheduler_start(shared.scheduler));
    ANSWERS(TSUMUGI_ERROR_RUNNING,
            tsumugi_scheduler_run(shared.scheduler, everything, NULL, NULL));
    OK(tsumugi_mutex_create(&shared.mutex));
    OK(tsumugi_spawn(shared.scheduler, NULL, count_up, (void *)(uintptr_t)ROUNDS, &counter));
    for (unsigned n = 0; n < TASKS; n++) {
        tasks[n] = (struct task){.number = n};
        pthread_mutex_init(&tasks[n].mutex, NULL);
        pthread_cond_init(&tasks[n].bell, NULL);
        CHECK(pthread_create(&threads[n], NULL, be_a_task, &tasks[n]) == 0);
    }
    for (unsigned n = 0; n < TASKS; n++) {
        CHECK(pthread_join(threads[n], NULL) == 0);
        pthread_cond_destroy(&tasks[n].bell);
        pthread_mutex_destroy(&tasks[n].mutex);
    }
    OK(tsumugi_join(counter, NULL));
    CHECK(shared.count == (TASKS + 1) * ROUNDS);
    CHECK(atomic_load(&foreign.parks) > 0);
    CHECK(atomic_load(&foreign.unparks) > 0);
    printf("%u parks and %u unparks by functions of ours\n", atomic_load(&foreign.parks),
           atomic_load(&foreign.unparks));
    tsumugi_wait_unregister(registration);
    tsumugi_mutex_destroy(shared.mutex);
    tsumugi_scheduler_destroy(shared.scheduler);
}

/* Calls that are refused. */

static void *park_for_ever(void *unused)
{
    for (;;) {
        tsumugi_park();
    }
    return unused;
}

static void mistakes_are_named(void)
{
    struct tsumugi_scheduler *scheduler = NULL;
    struct tsumugi_config config = {.size = sizeof config, .workers = 1000000};
    struct tsumugi_ult *abandoned;
    ANSWERS(TSUMUGI_ERROR_WORKER, tsumugi_scheduler_create(&config, &scheduler));
    config.workers = 1;
    config.stack_bytes = 1000;
    ANSWERS(TSUMUGI_ERROR_STACK, tsumugi_scheduler_create(&config, &scheduler));
    config.size = 4;
    ANSWERS(TSUMUGI_ERROR_SIZE, tsumugi_scheduler_create(&config, &scheduler));
    ANSWERS(TSUMUGI_ERROR_NULL, tsumugi_scheduler_create(NULL, NULL));
    CHECK(scheduler == NULL);
    ANSWERS(TSUMUGI_ERROR_NO_ULT, tsumugi_spawn(NULL, NULL, plus_one, NULL, NULL));
    struct tsumugi_id id;
    ANSWERS(TSUMUGI_ERROR_NO_ULT, tsumugi_self(&id));
    struct tsumugi_wait no_functions = {.size = sizeof no_functions};
    struct tsumugi_registration *registration;
    ANSWERS(TSUMUGI_ERROR_NULL, tsumugi_wait_register(&no_functions, &registration));
    CHECK(strcmp(tsumugi_error_text(TSUMUGI_OK), "done") == 0);
    /* A ULT that was cut off: its join returns an error. */
    scheduler = two_workers();
    OK(tsumugi_scheduler_start(scheduler));
    OK(tsumugi_spawn(scheduler, NULL, park_for_ever, NULL, &abandoned));
    tsumugi_scheduler_destroy(scheduler);
    ANSWERS(TSUMUGI_ERROR_ENDED, tsumugi_join(abandoned, NULL));
    tsumugi_scheduler_destroy(NULL);
}

/* A ULT that ends its own scheduler, which aborts the process. */
static void *end_own_scheduler(void *scheduler)
{
    tsumugi_scheduler_destroy(scheduler);
    return NULL;
}

static void *end_process(void *none)
{
    (void)none;
    exit(0);
}

/* A ULT that ends the thread on which it runs, which aborts the process. */
static void *end_own_thread(void *none)
{
    pthread_exit(none);
}

int main(int count, char **arguments)
{
    int here;
    void *value = NULL;
    struct tsumugi_scheduler *scheduler = two_workers();
    if (count > 1 && strcmp(arguments[1], "end-inside") == 0) {
        struct tsumugi_ult *ult;
        OK(tsumugi_scheduler_start(scheduler));
        OK(tsumugi_spawn(scheduler, NULL, end_own_scheduler, scheduler, &ult));
        OK(tsumugi_join(ult, NULL));
        return 0;
    }
    if (count > 1 && strcmp(arguments[1], "exit-thread") == 0) {
        tsumugi_scheduler_run(scheduler, end_own_thread, NULL, &value);
        return 0;
    }
    if (count > 1 && strcmp(arguments[1], "exit-spawned") == 0) {
        struct tsumugi_ult *ult;
        OK(tsumugi_scheduler_start(scheduler));
        OK(tsumugi_spawn(scheduler, NULL, end_own_thread, NULL, &ult));
        OK(tsumugi_join(ult, NULL));
        return 0;
    }
    if (count > 1 && strcmp(arguments[1], "exit-process") == 0) {
        tsumugi_scheduler_run(scheduler, end_process, NULL, &value);
        return 1;
    }
    OK(tsumugi_scheduler_run(scheduler, everything, &here, &value));
    CHECK(value == &here);
    ANSWERS(TSUMUGI_ERROR_ENDED, tsumugi_scheduler_run(scheduler, everything, NULL, NULL));
    ANSWERS(TSUMUGI_ERROR_ENDED, tsumugi_spawn(scheduler, NULL, plus_one, NULL, NULL));
    tsumugi_scheduler_destroy(scheduler);
    foreign_tasks_block();
    mistakes_are_named();
    printf("all is well\n");
    return 0;
}
