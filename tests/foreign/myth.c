/* A program of MassiveThreads: every function of include/compat/myth.h is called.
 * tests/myth.rs here compiles it with that header, and runs it with libmyth.so.0. */

#include "holds.h"

#include <myth/myth.h>

#include <errno.h>
#include <stdint.h>

#define OK(call) CHECK((call) == 0)

enum { MEMBERS = 8, ROUNDS = 200 };

static struct timespec in_ms(long ms)
{
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    long ns = at.tv_nsec + ms * 1000000;
    at.tv_sec += ns / 1000000000;
    at.tv_nsec = ns % 1000000000;
    return at;
}

static void *identity(void *arg) { return arg; }

static void *fib(void *arg)
{
    intptr_t n = (intptr_t)arg;
    if (n < 2) return arg;
    void *less = NULL;
    myth_thread_t child = myth_create(fib, (void *)(n - 1));
    intptr_t more = (intptr_t)fib((void *)(n - 2));
    OK(myth_join(child, &less));
    return (void *)(more + (intptr_t)less);
}

static void *exits(void *arg)
{
    myth_exit(arg);
    abort();
}

static void *gives_up(void *arg)
{
    volatile int *stop = arg;
    while (!*stop) {
        myth_testcancel();
        myth_yield();
    }
    return NULL;
}

static myth_thread_t made;
static int saw_itself;
static void *looks_at_its_id(void *arg)
{
    saw_itself = myth_equal(made, myth_self());
    return arg;
}

static void threads(void)
{
    void *result;
    CHECK((intptr_t)fib((void *)15) == 610);
    OK(myth_join(myth_create(exits, (void *)7), &result));
    CHECK(result == (void *)7);

    myth_thread_attr_t attr;
    int number;
    size_t bytes;
    void *address;
    OK(myth_thread_attr_init(&attr));
    OK(myth_thread_attr_setdetachstate(&attr, 0));
    OK(myth_thread_attr_getdetachstate(&attr, &number));
    OK(myth_thread_attr_setguardsize(&attr, 4096));
    OK(myth_thread_attr_getguardsize(&attr, &bytes));
    OK(myth_thread_attr_setstack(&attr, NULL, 1 << 20));
    OK(myth_thread_attr_getstack(&attr, &address, &bytes));
    OK(myth_thread_attr_setstacksize(&attr, 256 << 10));
    OK(myth_thread_attr_getstacksize(&attr, &bytes));
    CHECK(bytes == 256 << 10 && number == 0);
    OK(myth_create_ex(&made, &attr, looks_at_its_id, &attr));
    OK(myth_join(made, &result));
    CHECK(result == &attr);
    OK(myth_create_ex(&made, NULL, looks_at_its_id, &made));
    OK(myth_join(made, &result));
    CHECK(saw_itself && result == &made);
    OK(myth_thread_attr_destroy(&attr));
    OK(myth_getattr_default_np(&attr));
    OK(myth_getattr_np(myth_self(), &attr));
    attr.detachstate = 1;
    OK(myth_create_ex(NULL, &attr, identity, NULL));
    OK(myth_detach(myth_create(identity, NULL)));

    volatile int stop = 0;
    myth_globalattr_set_child_first(NULL, 1);
    myth_thread_attr_t later;
    OK(myth_thread_attr_init(&later));
    later.child_first = 0;
    myth_thread_t waits;
    OK(myth_create_ex(&waits, &later, gives_up, (void *)&stop));
    CHECK(myth_tryjoin(waits, &result) == EBUSY);
    struct timespec soon = in_ms(1);
    CHECK(myth_timedjoin(waits, &result, &soon) == ETIMEDOUT);
    OK(myth_cancel(waits));
    OK(myth_join(waits, &result));
    CHECK(result == PTHREAD_CANCELED);
    OK(myth_setcancelstate(0, &number));
    OK(myth_setcanceltype(0, &number));

    myth_yield_ex(myth_yield_option_local_first);
    OK(myth_sched_yield());
    CHECK(myth_sleep(0) == 0);
    OK(myth_usleep(10));
    struct timespec short_time = { 0, 1000 }, rest;
    OK(myth_nanosleep(&short_time, &rest));

    intptr_t args[MEMBERS], results[MEMBERS];
    myth_func_t funcs[MEMBERS];
    for (int i = 0; i < MEMBERS; i++) {
        args[i] = i;
        funcs[i] = identity;
    }
    OK(myth_create_join_many_ex(NULL, NULL, identity, args, results, 0, 0, sizeof args[0],
                                sizeof results[0], MEMBERS));
    CHECK(results[3] == (intptr_t)&args[3]);
    OK(myth_create_join_various_ex(NULL, NULL, funcs, args, results, 0, 0, sizeof funcs[0],
                                   sizeof args[0], sizeof results[0], MEMBERS));
    CHECK(results[MEMBERS - 1] == (intptr_t)&args[MEMBERS - 1]);
}

static myth_mutex_t mutex = MYTH_MUTEX_INITIALIZER;
static myth_cond_t changed = MYTH_COND_INITIALIZER;
static myth_rwlock_t rwlock = MYTH_RWLOCK_INITIALIZER;
static myth_spinlock_t spin = MYTH_SPINLOCK_INITIALIZER;
static myth_once_t once = { myth_once_state_init };
static myth_barrier_t barrier;
static myth_join_counter_t counter;
static myth_felock_t felock;
static myth_uncond_t uncond;
static long total, spun, turn, initialized, serial, taken;

static void initialize(void) { initialized++; }

static void *member(void *arg)
{
    long number = (intptr_t)arg;
    OK(myth_once(&once, initialize));
    for (int round = 0; round < ROUNDS; round++) {
        OK(myth_mutex_lock(&mutex));
        long seen = total;
        if (round % 16 == 0) myth_yield();
        total = seen + 1;
        OK(myth_mutex_unlock(&mutex));
        myth_spin_lock(&spin);
        spun++;
        OK(myth_spin_unlock(&spin));
        OK(round % 8 ? myth_rwlock_rdlock(&rwlock) : myth_rwlock_wrlock(&rwlock));
        OK(myth_rwlock_unlock(&rwlock));
    }
    /* Each in its turn. */
    OK(myth_mutex_lock(&mutex));
    while (turn != number) OK(myth_cond_wait(&changed, &mutex));
    turn++;
    OK(myth_cond_broadcast(&changed));
    OK(myth_mutex_unlock(&mutex));
    if (myth_barrier_wait(&barrier) == MYTH_BARRIER_SERIAL_THREAD) serial++;
    myth_barrier_wait(&barrier);
    OK(myth_join_counter_dec(&counter));
    return NULL;
}

static void *producer(void *arg)
{
    for (long i = 1; i <= ROUNDS; i++) {
        OK(myth_felock_wait_and_lock(&felock, 0));
        *(long *)arg = i;
        OK(myth_felock_mark_and_signal(&felock, 1));
    }
    return NULL;
}

static void *sleeper(void *arg)
{
    OK(myth_uncond_wait(&uncond));
    return arg;
}

static void synchronization(void)
{
    struct timespec soon = in_ms(1);
    OK(myth_barrier_init(&barrier, NULL, MEMBERS));
    OK(myth_join_counter_init(&counter, NULL, MEMBERS));
    myth_thread_t members[MEMBERS];
    for (long i = 0; i < MEMBERS; i++) members[i] = myth_create(member, (void *)i);
    OK(myth_join_counter_wait(&counter));
    for (int i = 0; i < MEMBERS; i++) OK(myth_join(members[i], NULL));
    CHECK(total == MEMBERS * ROUNDS && spun == total);
    CHECK(turn == MEMBERS && initialized == 1 && serial == 1);
    OK(myth_barrier_destroy(&barrier));

    OK(myth_mutex_trylock(&mutex));
    CHECK(myth_mutex_trylock(&mutex) == EBUSY);
    CHECK(myth_mutex_timedlock(&mutex, &soon) == ETIMEDOUT);
    CHECK(myth_cond_timedwait(&changed, &mutex, &soon) == ETIMEDOUT);
    OK(myth_mutex_unlock(&mutex));
    OK(myth_mutex_destroy(&mutex));
    myth_mutexattr_t kind;
    int type;
    OK(myth_mutexattr_init(&kind));
    OK(myth_mutexattr_settype(&kind, MYTH_MUTEX_RECURSIVE));
    OK(myth_mutexattr_gettype(&kind, &type));
    CHECK(type == MYTH_MUTEX_RECURSIVE);
    OK(myth_mutex_init(&mutex, &kind));
    OK(myth_mutex_lock(&mutex));
    OK(myth_mutex_lock(&mutex));
    OK(myth_mutex_unlock(&mutex));
    OK(myth_mutex_unlock(&mutex));
    CHECK(myth_mutex_unlock(&mutex) == EPERM);
    OK(myth_mutexattr_destroy(&kind));

    myth_condattr_t none;
    OK(myth_condattr_init(&none));
    OK(myth_cond_init(&changed, &none));
    OK(myth_cond_signal(&changed));
    OK(myth_cond_destroy(&changed));
    OK(myth_condattr_destroy(&none));

    myth_rwlockattr_t prefers;
    OK(myth_rwlockattr_init(&prefers));
    OK(myth_rwlockattr_setkind(&prefers, MYTH_RWLOCK_PREFER_WRITER));
    OK(myth_rwlockattr_getkind(&prefers, &type));
    OK(myth_rwlock_init(&rwlock, &prefers));
    OK(myth_rwlock_tryrdlock(&rwlock));
    CHECK(myth_rwlock_trywrlock(&rwlock) == EBUSY);
    CHECK(myth_rwlock_timedwrlock(&rwlock, &soon) == ETIMEDOUT);
    OK(myth_rwlock_unlock(&rwlock));
    OK(myth_rwlock_trywrlock(&rwlock));
    CHECK(myth_rwlock_timedrdlock(&rwlock, &soon) == ETIMEDOUT);
    OK(myth_rwlock_unlock(&rwlock));
    OK(myth_rwlock_destroy(&rwlock));
    OK(myth_rwlockattr_destroy(&prefers));

    OK(myth_felock_init(&felock, NULL));
    long cell = 0;
    myth_thread_t produces = myth_create(producer, &cell);
    for (long i = 1; i <= ROUNDS; i++) {
        OK(myth_felock_wait_and_lock(&felock, 1));
        CHECK(cell == i && myth_felock_status(&felock) == 1);
        taken++;
        OK(myth_felock_mark_and_signal(&felock, 0));
    }
    OK(myth_join(produces, NULL));
    OK(myth_felock_lock(&felock));
    OK(myth_felock_unlock(&felock));
    OK(myth_felock_destroy(&felock));
    CHECK(taken == ROUNDS);

    OK(myth_uncond_init(&uncond));
    for (int i = 0; i < ROUNDS; i++) {
        myth_thread_t sleeps = myth_create(sleeper, NULL);
        OK(myth_uncond_signal(&uncond));
        OK(myth_join(sleeps, NULL));
    }
    OK(myth_uncond_destroy(&uncond));

    OK(myth_spin_init(&spin));
    CHECK(myth_spin_trylock(&spin) == 1 && myth_spin_trylock(&spin) == 0);
    OK(myth_spin_unlock(&spin));
    OK(myth_spin_destroy(&spin));

    myth_barrierattr_t of_barrier;
    myth_join_counterattr_t of_counter;
    myth_felockattr_t of_felock;
    OK(myth_barrierattr_init(&of_barrier));
    OK(myth_barrierattr_destroy(&of_barrier));
    OK(myth_join_counterattr_init(&of_counter));
    OK(myth_join_counterattr_destroy(&of_counter));
    OK(myth_felockattr_init(&of_felock));
    OK(myth_felockattr_destroy(&of_felock));
}

static myth_key_t key;
static int destroyed;
static void destroy(void *value) { destroyed += value != NULL; }

static void *has_values(void *arg)
{
    CHECK(myth_getspecific(key) == NULL);
    OK(myth_setspecific(key, arg));
    myth_yield();
    CHECK(myth_getspecific(key) == arg);
    return arg;
}

static void data(void)
{
    myth_key_t many[20];
    for (int i = 0; i < 20; i++) OK(myth_key_create(&many[i], NULL));
    for (intptr_t i = 0; i < 20; i++) OK(myth_setspecific(many[i], (void *)(i + 1)));
    for (intptr_t i = 0; i < 20; i++) CHECK(myth_getspecific(many[i]) == (void *)(i + 1));
    OK(myth_key_create(&key, destroy));
    myth_thread_t members[MEMBERS];
    for (int i = 0; i < MEMBERS; i++) members[i] = myth_create(has_values, &members[i]);
    for (int i = 0; i < MEMBERS; i++) OK(myth_join(members[i], NULL));
    CHECK(destroyed == MEMBERS);
    OK(myth_key_delete(key));
    CHECK(myth_key_delete(key) == EINVAL);

    myth_wls_key_t of_worker;
    OK(myth_wls_key_create(&of_worker, NULL));
    OK(myth_wls_setspecific(of_worker, &of_worker));
    CHECK(myth_wls_getspecific(of_worker) == &of_worker);
    OK(myth_wls_key_delete(of_worker));
}

static void *outside(void *arg)
{
    CHECK(!myth_is_myth_worker() && myth_self() == NULL);
    void *result;
    OK(myth_join(myth_create(identity, arg), &result));
    return result;
}

int main(void)
{
    myth_globalattr_t attr;
    size_t bytes, workers;
    int number;
    OK(myth_globalattr_init(&attr));
    OK(myth_globalattr_set_n_workers(&attr, 2));
    OK(myth_globalattr_get_n_workers(&attr, &workers));
    OK(myth_globalattr_set_stacksize(&attr, 64 << 10));
    OK(myth_globalattr_get_stacksize(&attr, &bytes));
    OK(myth_globalattr_set_guardsize(&attr, 4096));
    OK(myth_globalattr_get_guardsize(&attr, &bytes));
    OK(myth_globalattr_set_bind_workers(&attr, 0));
    OK(myth_globalattr_get_bind_workers(&attr, &number));
    OK(myth_globalattr_get_child_first(&attr, &number));
    CHECK(workers == 2 && bytes == 4096);
    CHECK(!myth_is_myth_worker());
    OK(myth_init_ex(&attr));
    OK(myth_init());
    OK(myth_globalattr_destroy(&attr));
    CHECK(myth_is_myth_worker() && myth_get_num_workers() == 2);
    CHECK(myth_getconcurrency() == 2 && myth_get_worker_num() < 2);

    threads();
    synchronization();
    data();
    pthread_t other;
    void *result;
    OK(pthread_create(&other, NULL, outside, &key));
    OK(pthread_join(other, &result));
    CHECK(result == &key);

    /* The library ends, and starts again by itself. */
    myth_fini();
    CHECK(!myth_is_myth_worker());
    CHECK((intptr_t)fib((void *)10) == 55);
    myth_fini();
    puts("all is well");
    return 0;
}
