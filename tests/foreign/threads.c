/* A foreign library of user-level threads: contexts of ucontext.h that two pthreads run
 * in turn, and that move between the pthreads, as in MassiveThreads and Argobots. These
 * tasks join ULTs of tsumugi and wait for each other, and the pthreads run other tasks
 * meanwhile. tests/capi.rs here compiles and runs it. */

#include "tasks.h"

#include <pthread.h>
#include <stdatomic.h>
#include <ucontext.h>

enum { WORKERS = 2, STACK_BYTES = 256 << 10 };

/* The scheduler. */

struct worker {
    pthread_t thread;
    ucontext_t context;
};

struct task {
    ucontext_t context;
    struct worker *worker;
    struct task *next;
    void (*body)(struct task *);
    unsigned number;
    bool has_token, is_parked;
    char stack[STACK_BYTES];
};

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct task *first, **last;
    unsigned alive;
    unsigned long switches, moves;
} sched = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static _Thread_local struct task *running;

/* The caller holds the lock. */
static void make_ready(struct task *task)
{
    task->next = NULL;
    *sched.last = task;
    sched.last = &task->next;
    pthread_cond_signal(&sched.changed);
}

/* The caller holds the lock, which the worker releases when the task has left. */
static void leave(struct task *task)
{
    swapcontext(&task->context, &task->worker->context);
}

static void begin(unsigned high, unsigned low)
{
    struct task *task = (struct task *)((uintptr_t)high << 32 | low);
    task->body(task);
    pthread_mutex_lock(&sched.mutex);
    if (--sched.alive == 0) {
        pthread_cond_broadcast(&sched.changed);
    }
    leave(task);
    abort();
}

static void *work(void *own)
{
    struct worker *worker = own;
    pthread_mutex_lock(&sched.mutex);
    for (;;) {
        while (sched.first == NULL && sched.alive > 0) {
            pthread_cond_wait(&sched.changed, &sched.mutex);
        }
        struct task *task = sched.first;
        if (task == NULL) {
            break;
        }
        sched.first = task->next;
        if (sched.first == NULL) {
            sched.last = &sched.first;
        }
        sched.switches++;
        sched.moves += task->worker != NULL && task->worker != worker;
        task->worker = worker;
        running = task;
        pthread_mutex_unlock(&sched.mutex);
        swapcontext(&worker->context, &task->context);
        /* The task has taken the lock. */
        running = NULL;
    }
    pthread_mutex_unlock(&sched.mutex);
    return NULL;
}

static void prepare(struct task *task)
{
    uintptr_t address = (uintptr_t)task;
    CHECK(getcontext(&task->context) == 0);
    task->context.uc_stack.ss_sp = task->stack;
    task->context.uc_stack.ss_size = STACK_BYTES;
    makecontext(&task->context, (void (*)(void))begin, 2, (unsigned)(address >> 32),
                (unsigned)address);
    make_ready(task);
}

static void run(struct task *tasks, unsigned count, void (*body)(struct task *))
{
    struct worker workers[WORKERS];
    sched.last = &sched.first;
    sched.alive = count;
    for (unsigned n = 0; n < count; n++) {
        tasks[n].body = body;
        tasks[n].number = n;
        prepare(&tasks[n]);
    }
    for (unsigned n = 0; n < WORKERS; n++) {
        CHECK(pthread_create(&workers[n].thread, NULL, work, &workers[n]) == 0);
    }
    for (unsigned n = 0; n < WORKERS; n++) {
        CHECK(pthread_join(workers[n].thread, NULL) == 0);
    }
}

/* The functions by which tsumugi parks and unparks the tasks. */

static void *current_task(void *context)
{
    (void)context;
    return running;
}

static void yield_task(void *context)
{
    struct task *task = running;
    (void)context;
    pthread_mutex_lock(&sched.mutex);
    make_ready(task);
    leave(task);
}

static void park_task(void *context, void *name, uint64_t limit_ns)
{
    struct task *task = name;
    if (limit_ns != TSUMUGI_FOREVER) {
        /* This scheduler has no clock: other tasks run, and tsumugi looks at its clock
         * again. */
        yield_task(context);
        return;
    }
    pthread_mutex_lock(&sched.mutex);
    if (task->has_token) {
        task->has_token = false;
        pthread_mutex_unlock(&sched.mutex);
    } else {
        task->is_parked = true;
        leave(task);
    }
}

static void unpark_task(void *context, void *name)
{
    struct task *task = name;
    (void)context;
    pthread_mutex_lock(&sched.mutex);
    if (task->is_parked) {
        task->is_parked = false;
        make_ready(task);
    } else {
        task->has_token = true;
    }
    pthread_mutex_unlock(&sched.mutex);
}

/* The body of the tasks. */

static struct tsumugi_unparker *unparkers[TASKS];

static void live(struct task *task)
{
    share_lock();
    /* The tasks go on one after the other, the last one first. Each unparks the task
     * with the number before its own. */
    OK(tsumugi_mutex_lock(mutex));
    OK(tsumugi_unparker_create(&unparkers[task->number]));
    turn++;
    OK(tsumugi_condvar_notify_all(changed));
    while (turn < TASKS) {
        OK(tsumugi_condvar_wait(changed, mutex));
    }
    OK(tsumugi_mutex_unlock(mutex));
    if (task->number + 1 < TASKS) {
        tsumugi_park();
    }
    if (task->number > 0) {
        OK(tsumugi_unpark(unparkers[task->number - 1]));
    }
}

int main(void)
{
    struct tsumugi_wait wait = {
        .size = sizeof wait,
        .current = current_task,
        .park = park_task,
        .unpark = unpark_task,
        .yield_now = yield_task,
    };
    struct tsumugi_registration *registration;
    struct task *tasks = calloc(TASKS, sizeof *tasks);
    CHECK(tasks != NULL);
    begin_sharing(&wait, &registration);
    run(tasks, TASKS, live);
    for (unsigned n = 0; n < TASKS; n++) {
        tsumugi_unparker_destroy(unparkers[n]);
    }
    end_sharing(registration);
    printf("%lu switches, %lu of them to the other pthread\n", sched.switches, sched.moves);
    CHECK(sched.switches > TASKS);
    free(tasks);
    printf("all is well\n");
    return 0;
}
