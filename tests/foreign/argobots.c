/* ULTs of Argobots on two execution streams join ULTs of tsumugi, and wait for each
 * other by tsumugi's locks, while the streams run other ULTs. Prints a line where there
 * is no libabt.so. tests/capi.rs here compiles and runs it. */

#include "tasks.h"

#include <dlfcn.h>
#include <stdatomic.h>

#define ABT(call) CHECK((call) == ABT_SUCCESS)

enum { STREAMS = 2 };

/* The part of abt.h that is used. */

typedef void *handle;

enum { ABT_SUCCESS = 0, ABT_POOL_FIFO = 0, ABT_POOL_ACCESS_MPMC = 4, ABT_SCHED_DEFAULT = 0 };

#define FUNCTIONS(each)                                                        \
    each(init, (int, char **))                                                 \
    each(finalize, (void))                                                     \
    each(pool_create_basic, (int, int, int, handle *))                         \
    each(xstream_create_basic, (int, int, handle *, handle, handle *))         \
    each(xstream_join, (handle))                                               \
    each(xstream_free, (handle *))                                             \
    each(thread_create, (handle, void (*)(void *), void *, handle, handle *))  \
    each(thread_free, (handle *))                                              \
    each(thread_resume, (handle))                                              \
    each(self_get_thread, (handle *))                                          \
    each(self_get_arg, (void **))                                              \
    each(self_suspend, (void))                                                 \
    each(self_yield, (void))                                                   \
    each(self_get_xstream_rank, (int *))

#define DECLARE(name, arguments) static int(*ABT_##name) arguments;
FUNCTIONS(DECLARE)

static bool load(void)
{
    void *library = dlopen("libabt.so", RTLD_NOW);
    if (library == NULL) {
        return false;
    }
#define FIND(name, arguments)                                                  \
    *(void **)&ABT_##name = dlsym(library, "ABT_" #name);                      \
    CHECK(ABT_##name != NULL);
    FUNCTIONS(FIND)
    return true;
}

/* The functions by which tsumugi parks and unparks ULTs of Argobots. */

enum { AWAKE, PARKED, TOKEN };

struct task {
    handle thread;
    _Atomic int state;
    unsigned number;
};

static struct task tasks[TASKS];
static _Atomic unsigned long parks, moves;

static void *current_task(void *context)
{
    void *task = NULL;
    (void)context;
    /* The caller is not on a stream of Argobots: an OS thread of tsumugi or of the
     * program. */
    if (ABT_self_get_arg(&task) != ABT_SUCCESS) {
        return NULL;
    }
    return (struct task *)task >= tasks && (struct task *)task < tasks + TASKS ? task : NULL;
}

static void yield_task(void *context)
{
    (void)context;
    ABT(ABT_self_yield());
}

static void park_task(void *context, void *name, uint64_t limit_ns)
{
    struct task *task = name;
    int awake = AWAKE;
    if (limit_ns != TSUMUGI_FOREVER) {
        /* Argobots has no sleep with a limit: other ULTs run, and tsumugi looks at its
         * clock again. */
        yield_task(context);
        return;
    }
    if (atomic_compare_exchange_strong(&task->state, &awake, PARKED)) {
        int before, after;
        ABT(ABT_self_get_xstream_rank(&before));
        ABT(ABT_self_suspend());
        ABT(ABT_self_get_xstream_rank(&after));
        parks++;
        moves += before != after;
    }
    atomic_store(&task->state, AWAKE);
}

static void unpark_task(void *context, void *name)
{
    struct task *task = name;
    (void)context;
    if (atomic_exchange(&task->state, TOKEN) == PARKED) {
        /* The resume fails until the ULT has left its stream. */
        while (ABT_thread_resume(task->thread) != ABT_SUCCESS) {
        }
    }
}

/* The body of the ULTs. */

static void live(void *arg)
{
    struct task *task = arg;
    ABT(ABT_self_get_thread(&task->thread));
    share_lock();
    /* The ULTs take turns, in the order of their numbers. */
    OK(tsumugi_mutex_lock(mutex));
    while (turn != task->number) {
        OK(tsumugi_condvar_wait(changed, mutex));
    }
    turn++;
    OK(tsumugi_condvar_notify_all(changed));
    OK(tsumugi_mutex_unlock(mutex));
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
    handle pool, streams[STREAMS], threads[TASKS];
    if (!load()) {
        printf("there is no libabt.so: left out\nall is well\n");
        return 0;
    }
    ABT(ABT_init(0, NULL));
    begin_sharing(&wait, &registration);
    ABT(ABT_pool_create_basic(ABT_POOL_FIFO, ABT_POOL_ACCESS_MPMC, 0, &pool));
    for (unsigned n = 0; n < TASKS; n++) {
        tasks[n].number = n;
        ABT(ABT_thread_create(pool, live, &tasks[n], NULL, &threads[n]));
    }
    for (unsigned n = 0; n < STREAMS; n++) {
        ABT(ABT_xstream_create_basic(ABT_SCHED_DEFAULT, 1, &pool, NULL, &streams[n]));
    }
    for (unsigned n = 0; n < TASKS; n++) {
        ABT(ABT_thread_free(&threads[n]));
    }
    for (unsigned n = 0; n < STREAMS; n++) {
        ABT(ABT_xstream_join(streams[n]));
        ABT(ABT_xstream_free(&streams[n]));
    }
    CHECK(turn == TASKS);
    end_sharing(registration);
    ABT(ABT_finalize());
    printf("%lu parks, after %lu of them on the other stream\n", parks, moves);
    CHECK(parks > 0);
    printf("all is well\n");
    return 0;
}
