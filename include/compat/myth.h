/* MassiveThreads' documented functions, over tsumugi's user-level threads: the header
 * of libmyth.so.0, which `cargo build --release --package tsumugi-myth` makes.
 * docs/c.md says what differs.
 *
 * A function returns 0 or a number of errno.h, unless it says something else. The
 * objects have MassiveThreads' sizes and initializers, all of their state lies in them,
 * and zero bytes are a free object. The first call of a function makes the caller a
 * user-level thread, and its OS thread the first worker.
 *
 * After each call that may wait, and after each spawn, a thread may continue on another
 * OS thread: the address of a _Thread_local variable (also of errno), a locked
 * pthread_mutex_t and a locked FILE must not be kept across such a call. */
#ifndef TSUMUGI_COMPAT_MYTH_H
#define TSUMUGI_COMPAT_MYTH_H

#include <pthread.h>
#include <stddef.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The library in a process. */

typedef struct {
    size_t stacksize;
    size_t guardsize;
    int n_workers;
    int bind_workers;
    int child_first;
    int initialized;
} myth_globalattr_t;

/* Starts the library; returns -1 if there is no memory or no OS thread. Without
 * attributes those of the environment hold: MYTH_NUM_WORKERS, MYTH_DEF_STKSIZE,
 * MYTH_DEF_GUARDSIZE, MYTH_CHILD_FIRST, MYTH_BIND_WORKERS, MYTH_CPU_LIST. */
int myth_init(void);
int myth_init_ex(myth_globalattr_t *attr);
/* Ends the library: the caller, which has started it, is an ordinary thread again.
 * Threads that have not ended are cut off. */
void myth_fini(void);

int myth_globalattr_init(myth_globalattr_t *attr);
int myth_globalattr_destroy(myth_globalattr_t *attr);
/* NULL stands for the attributes of the process. */
int myth_globalattr_get_stacksize(myth_globalattr_t *attr, size_t *bytes);
int myth_globalattr_set_stacksize(myth_globalattr_t *attr, size_t bytes);
int myth_globalattr_get_guardsize(myth_globalattr_t *attr, size_t *bytes);
int myth_globalattr_set_guardsize(myth_globalattr_t *attr, size_t bytes);
int myth_globalattr_get_n_workers(myth_globalattr_t *attr, size_t *workers);
int myth_globalattr_set_n_workers(myth_globalattr_t *attr, size_t workers);
int myth_globalattr_get_bind_workers(myth_globalattr_t *attr, int *binds);
int myth_globalattr_set_bind_workers(myth_globalattr_t *attr, int binds);
int myth_globalattr_get_child_first(myth_globalattr_t *attr, int *first);
int myth_globalattr_set_child_first(myth_globalattr_t *attr, int first);

int myth_get_worker_num(void); /* from 0 */
int myth_get_num_workers(void);
int myth_getconcurrency(void);  /* the same */
int myth_is_myth_worker(void);  /* 1 or 0 */

/* Threads. */

typedef struct myth_thread *myth_thread_t;
typedef void *(*myth_func_t)(void *);

typedef struct myth_thread_attr {
    void *stackaddr; /* not used: each thread has a stack of the library's */
    size_t stacksize;
    size_t guardsize;
    int detachstate;
    int child_first; /* 0: the creator runs on; else the new thread runs first */
    size_t custom_data_size;
    void *custom_data;
} myth_thread_attr_t;

/* Ends the process if there is no memory. */
myth_thread_t myth_create(myth_func_t func, void *arg);
/* `id` and `attr` may be NULL. */
int myth_create_ex(myth_thread_t *id, myth_thread_attr_t *attr, myth_func_t func, void *arg);
/* The frames of the thread's function are unwound. */
void myth_exit(void *result);
/* `result` may be NULL. A thread is joined once, or detached once. */
int myth_join(myth_thread_t thread, void **result);
int myth_tryjoin(myth_thread_t thread, void **result); /* EBUSY */
int myth_timedjoin(myth_thread_t thread, void **result, const struct timespec *until);
int myth_detach(myth_thread_t thread);
myth_thread_t myth_self(void);
int myth_equal(myth_thread_t a, myth_thread_t b);

/* Threads of the elements of arrays, all joined: the distances of elements are in bytes.
 * `ids`, `attrs` and `results` may be NULL. */
int myth_create_join_many_ex(myth_thread_t *ids, myth_thread_attr_t *attrs, myth_func_t func,
                             void *args, void *results, size_t id_stride, size_t attr_stride,
                             size_t arg_stride, size_t result_stride, long nthreads);
int myth_create_join_various_ex(myth_thread_t *ids, myth_thread_attr_t *attrs,
                                myth_func_t *funcs, void *args, void *results,
                                size_t id_stride, size_t attr_stride, size_t func_stride,
                                size_t arg_stride, size_t result_stride, long nthreads);

enum {
    myth_yield_option_half_half = 0,
    myth_yield_option_local_only = 1,
    myth_yield_option_local_first = 2,
    myth_yield_option_steal_only = 3,
    myth_yield_option_steal_first = 4
};
void myth_yield(void);
void myth_yield_ex(int option); /* the option is a hint, and not used */
int myth_sched_yield(void);

unsigned int myth_sleep(unsigned int seconds);
int myth_usleep(unsigned int microseconds);
int myth_nanosleep(const struct timespec *request, struct timespec *rest);

/* A thread that was cancelled gives up at myth_testcancel, and nowhere else. */
int myth_cancel(myth_thread_t thread);
void myth_testcancel(void);
int myth_setcancelstate(int state, int *before);
int myth_setcanceltype(int type, int *before);

int myth_thread_attr_init(myth_thread_attr_t *attr);
int myth_thread_attr_destroy(myth_thread_attr_t *attr);
int myth_thread_attr_getdetachstate(const myth_thread_attr_t *attr, int *state);
int myth_thread_attr_setdetachstate(myth_thread_attr_t *attr, int state);
int myth_thread_attr_getguardsize(const myth_thread_attr_t *attr, size_t *bytes);
int myth_thread_attr_setguardsize(myth_thread_attr_t *attr, size_t bytes);
int myth_thread_attr_getstacksize(const myth_thread_attr_t *attr, size_t *bytes);
int myth_thread_attr_setstacksize(myth_thread_attr_t *attr, size_t bytes);
int myth_thread_attr_getstack(const myth_thread_attr_t *attr, void **addr, size_t *bytes);
int myth_thread_attr_setstack(myth_thread_attr_t *attr, void *addr, size_t bytes);
int myth_getattr_default_np(myth_thread_attr_t *attr);
int myth_getattr_np(myth_thread_t thread, myth_thread_attr_t *attr);

/* Mutexes. */

enum {
    MYTH_MUTEX_NORMAL = 0,
    MYTH_MUTEX_ERRORCHECK = 1,
    MYTH_MUTEX_RECURSIVE = 2,
    MYTH_MUTEX_INVALID = 3,
    MYTH_MUTEX_DEFAULT = MYTH_MUTEX_NORMAL
};
typedef struct myth_mutexattr { int type; } myth_mutexattr_t;
typedef struct myth_mutex {
    int magic;
    int type;
    unsigned long state[4];
} myth_mutex_t;
#define MYTH_MUTEX_INITIALIZER { 123456789, MYTH_MUTEX_DEFAULT, { 0, 0, 0, 0 } }

int myth_mutex_init(myth_mutex_t *mutex, const myth_mutexattr_t *attr);
int myth_mutex_destroy(myth_mutex_t *mutex);
int myth_mutex_lock(myth_mutex_t *mutex);
int myth_mutex_trylock(myth_mutex_t *mutex); /* EBUSY */
int myth_mutex_timedlock(myth_mutex_t *mutex, const struct timespec *until); /* ETIMEDOUT */
int myth_mutex_unlock(myth_mutex_t *mutex);
int myth_mutexattr_init(myth_mutexattr_t *attr);
int myth_mutexattr_destroy(myth_mutexattr_t *attr);
int myth_mutexattr_gettype(const myth_mutexattr_t *attr, int *type);
int myth_mutexattr_settype(myth_mutexattr_t *attr, int type);

/* Reader-writer locks. */

enum {
    MYTH_RWLOCK_PREFER_READER,
    MYTH_RWLOCK_PREFER_WRITER,
    MYTH_RWLOCK_PREFER_WRITER_NONRECURSIVE,
    MYTH_RWLOCK_PREFER_INVALID
};
typedef struct myth_rwlockattr { int kind; } myth_rwlockattr_t;
typedef struct myth_rwlock {
    unsigned long state[4];
    int kind;
} myth_rwlock_t;
#define MYTH_RWLOCK_INITIALIZER { { 0, 0, 0, 0 }, MYTH_RWLOCK_PREFER_READER }

int myth_rwlock_init(myth_rwlock_t *lock, const myth_rwlockattr_t *attr);
int myth_rwlock_destroy(myth_rwlock_t *lock);
int myth_rwlock_rdlock(myth_rwlock_t *lock);
int myth_rwlock_tryrdlock(myth_rwlock_t *lock);
int myth_rwlock_timedrdlock(myth_rwlock_t *lock, const struct timespec *until);
int myth_rwlock_wrlock(myth_rwlock_t *lock);
int myth_rwlock_trywrlock(myth_rwlock_t *lock);
int myth_rwlock_timedwrlock(myth_rwlock_t *lock, const struct timespec *until);
int myth_rwlock_unlock(myth_rwlock_t *lock);
int myth_rwlockattr_init(myth_rwlockattr_t *attr);
int myth_rwlockattr_destroy(myth_rwlockattr_t *attr);
int myth_rwlockattr_getkind(const myth_rwlockattr_t *attr, int *kind);
int myth_rwlockattr_setkind(myth_rwlockattr_t *attr, int kind);

/* Condition variables. */

typedef struct myth_condattr { void *unused; } myth_condattr_t;
typedef struct myth_cond { unsigned long state[4]; } myth_cond_t;
#define MYTH_COND_INITIALIZER { { 0, 0, 0, 0 } }

int myth_cond_init(myth_cond_t *cond, const myth_condattr_t *attr);
int myth_cond_destroy(myth_cond_t *cond);
int myth_cond_signal(myth_cond_t *cond);
int myth_cond_broadcast(myth_cond_t *cond);
int myth_cond_wait(myth_cond_t *cond, myth_mutex_t *mutex);
int myth_cond_timedwait(myth_cond_t *cond, myth_mutex_t *mutex, const struct timespec *until);
int myth_condattr_init(myth_condattr_t *attr);
int myth_condattr_destroy(myth_condattr_t *attr);

/* Barriers. One of the threads that leave gets MYTH_BARRIER_SERIAL_THREAD. */

typedef struct myth_barrierattr { void *unused; } myth_barrierattr_t;
typedef struct myth_barrier { unsigned long state[4]; } myth_barrier_t;
#define MYTH_BARRIER_SERIAL_THREAD 1

int myth_barrier_init(myth_barrier_t *barrier, const myth_barrierattr_t *attr, unsigned int count);
int myth_barrier_destroy(myth_barrier_t *barrier);
int myth_barrier_wait(myth_barrier_t *barrier);
int myth_barrierattr_init(myth_barrierattr_t *attr);
int myth_barrierattr_destroy(myth_barrierattr_t *attr);

/* Join counters: threads wait until a number of decrements have happened. */

typedef struct myth_join_counterattr { void *unused; } myth_join_counterattr_t;
typedef struct myth_join_counter { unsigned long state[8]; } myth_join_counter_t;

int myth_join_counter_init(myth_join_counter_t *counter, const myth_join_counterattr_t *attr,
                           int count);
int myth_join_counter_wait(myth_join_counter_t *counter);
int myth_join_counter_dec(myth_join_counter_t *counter);
int myth_join_counterattr_init(myth_join_counterattr_t *attr);
int myth_join_counterattr_destroy(myth_join_counterattr_t *attr);

/* Full/empty locks: a lock with a status, 0 or 1. */

typedef struct myth_felockattr { void *unused; } myth_felockattr_t;
typedef struct myth_felock {
    myth_mutex_t mutex;
    myth_cond_t becomes[2];
    int status;
    myth_felockattr_t attr;
} myth_felock_t;

int myth_felock_init(myth_felock_t *lock, const myth_felockattr_t *attr);
int myth_felock_destroy(myth_felock_t *lock);
int myth_felock_lock(myth_felock_t *lock);
int myth_felock_unlock(myth_felock_t *lock);
int myth_felock_wait_and_lock(myth_felock_t *lock, int status);
int myth_felock_mark_and_signal(myth_felock_t *lock, int status);
int myth_felock_status(myth_felock_t *lock);
int myth_felockattr_init(myth_felockattr_t *attr);
int myth_felockattr_destroy(myth_felockattr_t *attr);

/* Uncondition variables: one thread sleeps, and a signal waits until one does. */

typedef struct { unsigned long state; } myth_uncond_t;

int myth_uncond_init(myth_uncond_t *uncond);
int myth_uncond_destroy(myth_uncond_t *uncond);
int myth_uncond_wait(myth_uncond_t *uncond);
int myth_uncond_signal(myth_uncond_t *uncond);

/* Once. */

enum {
    myth_once_state_init = 0,
    myth_once_state_in_progress = 1,
    myth_once_state_completed = 2
};
typedef struct { volatile int state; } myth_once_t;
int myth_once(myth_once_t *once, void (*init)(void));

/* Spin locks. myth_spin_trylock returns 1 if it has locked, else 0. */

typedef struct { volatile int locked; } myth_spinlock_t;
#define MYTH_SPINLOCK_INITIALIZER { 0 }
int myth_spin_init(myth_spinlock_t *lock);
int myth_spin_destroy(myth_spinlock_t *lock);
int myth_spin_lock(myth_spinlock_t *lock);
int myth_spin_trylock(myth_spinlock_t *lock);
int myth_spin_unlock(myth_spinlock_t *lock);

/* Data of each thread. The destructor is called for each value that a thread has set,
 * also for NULL. */

typedef int myth_key_t;
int myth_key_create(myth_key_t *key, void (*destructor)(void *));
int myth_key_delete(myth_key_t key);
int myth_setspecific(myth_key_t key, const void *value);
void *myth_getspecific(myth_key_t key);

/* Data of each worker. */

typedef pthread_key_t myth_wls_key_t;
int myth_wls_key_create(myth_wls_key_t *key, void (*destructor)(void *));
int myth_wls_key_delete(myth_wls_key_t key);
int myth_wls_setspecific(myth_wls_key_t key, const void *value);
void *myth_wls_getspecific(myth_wls_key_t key);

#ifdef __cplusplus
}
#endif

#endif
