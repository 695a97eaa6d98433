/* Announces synchronization in Rust's standard library to the thread sanitizer.
 *
 * The library is not rebuilt, so the sanitizer sees only the parts of it that are
 * inlined. The linker replaces the library functions below by these wrappers
 * (`--wrap`). Each wrapper calls the library's function, and tells the sanitizer
 * which word it acquires or releases: the word that the inlined parts use. */

#include <stdbool.h>
#include <stdint.h>

void __tsan_acquire(void *address);
void __tsan_release(void *address);

/* alloc::sync::{Arc, Weak}::drop, which are inlined: a count is decremented with Release,
 * and the drop of the last handle executes an Acquire fence, which the sanitizer ignores.
 * The wrapper of the fence acquires the word that this thread decremented last, since
 * nothing comes between the two. The wrapper of the decrement ends in a jump to the
 * sanitizer's own function, which therefore reports the right caller. */
static __thread void *decremented;

uint64_t __real___tsan_atomic64_fetch_sub(volatile uint64_t *word, uint64_t value, int order);
uint64_t __wrap___tsan_atomic64_fetch_sub(volatile uint64_t *word, uint64_t value, int order)
{
    decremented = (void *)word;
    return __real___tsan_atomic64_fetch_sub(word, value, order);
}

void __real___tsan_atomic_thread_fence(int order);
void __wrap___tsan_atomic_thread_fence(int order)
{
    if (decremented && order == __ATOMIC_ACQUIRE) {
        __tsan_acquire(decremented);
    }
    decremented = 0;
    __real___tsan_atomic_thread_fence(order);
}

/* std::sys::sync::mutex::futex::Mutex::lock_contended */
void real_mutex(char *mutex) __asm__("__real_" MUTEX);
void wrap_mutex(char *mutex) __asm__("__wrap_" MUTEX);
void wrap_mutex(char *mutex)
{
    real_mutex(mutex);
    __tsan_acquire(mutex);
}

/* std::sys::sync::rwlock::futex::RwLock::{read_contended, write_contended} */
void real_read(char *lock) __asm__("__real_" READ);
void wrap_read(char *lock) __asm__("__wrap_" READ);
void wrap_read(char *lock)
{
    real_read(lock);
    __tsan_acquire(lock);
}

void real_write(char *lock) __asm__("__real_" WRITE);
void wrap_write(char *lock) __asm__("__wrap_" WRITE);
void wrap_write(char *lock)
{
    real_write(lock);
    __tsan_acquire(lock);
}

/* std::sys::sync::condvar::futex::Condvar::{wait, wait_timeout}: they unlock the mutex
 * and lock it again. */
void real_wait(char *condvar, char *mutex) __asm__("__real_" WAIT);
void wrap_wait(char *condvar, char *mutex) __asm__("__wrap_" WAIT);
void wrap_wait(char *condvar, char *mutex)
{
    __tsan_release(mutex);
    real_wait(condvar, mutex);
    __tsan_acquire(mutex);
}

bool real_wait_timeout(char *condvar, char *mutex, uint64_t s, uint32_t ns)
    __asm__("__real_" WAIT_TIMEOUT);
bool wrap_wait_timeout(char *condvar, char *mutex, uint64_t s, uint32_t ns)
    __asm__("__wrap_" WAIT_TIMEOUT);
bool wrap_wait_timeout(char *condvar, char *mutex, uint64_t s, uint32_t ns)
{
    __tsan_release(mutex);
    bool came = real_wait_timeout(condvar, mutex, s, ns);
    __tsan_acquire(mutex);
    return came;
}

/* std::thread::scoped::ScopeData::decrement_num_running_threads: the count is one
 * of the three words of ScopeData, in an unknown order. */
void real_decrement(char *scope, bool panicked) __asm__("__real_" DECREMENT);
void wrap_decrement(char *scope, bool panicked) __asm__("__wrap_" DECREMENT);
void wrap_decrement(char *scope, bool panicked)
{
    for (int word = 0; word < 3; word++) {
        __tsan_release(scope + 8 * word);
    }
    real_decrement(scope, panicked);
}

/* std::sys::sync::once::futex::Once::call, on which OnceLock and LazyLock are built: the
 * closure runs before each call that finds it done. The closure is a `dyn FnMut`, and its
 * vtable has `call_once` and `call_mut` after drop, size and align. The wrapper passes a
 * vtable of its own, so that the release comes right after the closure, before Once
 * changes the state word that other threads read. */
struct closure {
    void *once;
    void *state;
    void **functions;
};

static void call_once(struct closure *of, void *argument)
{
    ((void (*)(void *, void *))of->functions[3])(of->state, argument);
    __tsan_release(of->once);
}

static void call_mut(struct closure *of, void *argument)
{
    ((void (*)(void *, void *))of->functions[4])(of->state, argument);
    __tsan_release(of->once);
}

void real_once(void *once, bool poisoned, void *state, void **functions, void *location)
    __asm__("__real_" ONCE);
void wrap_once(void *once, bool poisoned, void *state, void **functions, void *location)
    __asm__("__wrap_" ONCE);
void wrap_once(void *once, bool poisoned, void *state, void **functions, void *location)
{
    struct closure of = {once, state, functions};
    void *ours[] = {0, (void *)sizeof of, (void *)sizeof(void *), (void *)call_once,
                    (void *)call_mut};
    real_once(once, poisoned, &of, ours, location);
    __tsan_acquire(once);
}
