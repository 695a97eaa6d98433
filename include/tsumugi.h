/* tsumugi: user-level threads, other schedulers that wait for what tsumugi does,
 * jobs of several ranks, and the memory of all ranks. Made of src/capi by cbindgen;
 * do not edit.
 *
 * A function that can fail answers TSUMUGI_OK or a negative code, whose text
 * tsumugi_error_text has ("Errors: NULL" means TSUMUGI_ERROR_NULL); what it makes
 * goes to an out-parameter, which is written only on success. A struct that the
 * caller fills begins with its own size, so that it may grow; zero in a member is
 * its default. A handle is the caller's until the function that ends it. Neither a
 * panic nor a C++ exception crosses the border: it aborts the process.
 *
 * Suspension: a ULT may go on on another OS thread after each call that suspends it,
 * which is any that says "Blocks", tsumugi_yield, and a spawn with
 * TSUMUGI_SPAWN_CHILD_FIRST. What belongs to an OS thread must not live across one:
 * the address of a _Thread_local variable (of errno, too), a locked pthread_mutex_t,
 * a locked FILE. A compiler may keep such an address even where the source asks for
 * it anew: ask in a function that is not inlined. A ULT that is pinned to a worker
 * keeps its thread, and shares it with others meanwhile. Nothing checks any of that
 * in C.
 */

#ifndef TSUMUGI_H
#define TSUMUGI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * It was done.
 */
#define TSUMUGI_OK 0

/**
 * A pointer is null that must not be.
 */
#define TSUMUGI_ERROR_NULL -1

/**
 * A struct's `size` is none that this library knows, or a member that it does
 * not know is not zero.
 */
#define TSUMUGI_ERROR_SIZE -2

/**
 * A flag that does not exist.
 */
#define TSUMUGI_ERROR_FLAGS -3

/**
 * A name that is not UTF-8.
 */
#define TSUMUGI_ERROR_NAME -4

/**
 * There cannot be so many workers, or there is no such worker.
 */
#define TSUMUGI_ERROR_WORKER -5

/**
 * A stack cannot be of this size, or the memory of all stacks is too small.
 */
#define TSUMUGI_ERROR_STACK -6

/**
 * The system gave no memory.
 */
#define TSUMUGI_ERROR_MEMORY -7

/**
 * The system gave no thread.
 */
#define TSUMUGI_ERROR_THREAD -8

/**
 * The scheduler runs already.
 */
#define TSUMUGI_ERROR_RUNNING -9

/**
 * The scheduler has ended, or ended before the ULT did.
 */
#define TSUMUGI_ERROR_ENDED -10

/**
 * The caller is no ULT.
 */
#define TSUMUGI_ERROR_NO_ULT -11

/**
 * The time limit passed.
 */
#define TSUMUGI_ERROR_TIMED_OUT -12

/**
 * The caller was asked to give up.
 */
#define TSUMUGI_ERROR_CANCELLED -13

/**
 * It would have to wait.
 */
#define TSUMUGI_ERROR_BUSY -14

/**
 * The mutex is not locked.
 */
#define TSUMUGI_ERROR_NOT_LOCKED -15

/**
 * There are too many foreign schedulers, or regions.
 */
#define TSUMUGI_ERROR_CROWDED -16

/**
 * The process could not become a rank of its job, or the job fails.
 */
#define TSUMUGI_ERROR_JOB -17

/**
 * The address is of no rank.
 */
#define TSUMUGI_ERROR_NOWHERE -18

/**
 * No region is registered under the address, or not any more.
 */
#define TSUMUGI_ERROR_STALE -19

/**
 * Some of the bytes lie outside of their region.
 */
#define TSUMUGI_ERROR_RANGE -20

/**
 * An atomic off its natural alignment.
 */
#define TSUMUGI_ERROR_UNALIGNED -21

/**
 * The region is for reading.
 */
#define TSUMUGI_ERROR_READ_ONLY -22

/**
 * A rank has died.
 */
#define TSUMUGI_ERROR_LOST -23

/**
 * Memory must be of another rank.
 */
#define TSUMUGI_ERROR_ELSEWHERE -24

/**
 * What leads there has no such operation.
 */
#define TSUMUGI_ERROR_UNSUPPORTED -25

/**
 * The memory is where other ranks cannot reach it, or has no global address.
 */
#define TSUMUGI_ERROR_REACH -26

/**
 * The ULT runs before others that are ready whenever it becomes ready.
 */
#define TSUMUGI_SPAWN_URGENT 1

/**
 * The ULT goes on at once, and the caller later.
 */
#define TSUMUGI_SPAWN_CHILD_FIRST 2

/**
 * The ULT keeps its own floating-point control words.
 */
#define TSUMUGI_SPAWN_KEEP_FP_CONTROL 4

/**
 * A limit that never comes.
 */
#define TSUMUGI_FOREVER UINT64_MAX

/**
 * No byte of any rank's.
 */
#define TSUMUGI_ADDR_NULL 0

/**
 * Processors carry out the atomics on a region.
 */
#define TSUMUGI_AGENT_CPU 0

/**
 * The network's device does, also for ranks of the same node, where it can;
 * elsewhere processors do.
 */
#define TSUMUGI_AGENT_DEVICE 1

/**
 * The operand is added, wrapping.
 */
#define TSUMUGI_ATOMIC_ADD 0

/**
 * The bits of the operand are kept.
 */
#define TSUMUGI_ATOMIC_AND 1

/**
 * The bits of the operand are set.
 */
#define TSUMUGI_ATOMIC_OR 2

/**
 * The bits of the operand are flipped.
 */
#define TSUMUGI_ATOMIC_XOR 3

/**
 * The operand is stored.
 */
#define TSUMUGI_ATOMIC_SWAP 4

/**
 * Waiting for a condition under a mutex.
 */
struct tsumugi_condvar;

/**
 * This process as a rank of its job, and the global memory of all ranks. Any
 * thread and any ULT may use it.
 */
struct tsumugi_job;

/**
 * A key: under it each ULT, and each OS thread that is none, has a value of
 * its own, NULL at first.
 */
struct tsumugi_key;

/**
 * One at a time; first come, first served. For ULTs, foreign tasks and OS
 * threads alike. It may be unlocked on another OS thread than it was locked
 * on.
 */
struct tsumugi_mutex;

/**
 * An operation that was begun, until it is waited for or let go.
 */
struct tsumugi_operation;

/**
 * Memory of this rank's with a global address.
 */
struct tsumugi_region;

/**
 * A scheduler that is known.
 */
struct tsumugi_registration;

/**
 * A scheduler: workers and their ULTs. Any number of them may be in a process.
 */
struct tsumugi_scheduler;

/**
 * The right to join a ULT, once.
 */
struct tsumugi_ult;

/**
 * The right to unpark one ULT, foreign task or OS thread. It may outlive whom
 * it stands for: then nothing happens, or somebody else parks in vain once.
 */
struct tsumugi_unparker;

/**
 * What a scheduler is made of; zero in a member is its default.
 */
struct tsumugi_config {
  /**
   * `sizeof(struct tsumugi_config)`.
   */
  size_t size;
  /**
   * OS threads that run ULTs; by default as many as there are cores.
   */
  size_t workers;
  /**
   * Usable bytes of a ULT's stack, a multiple of the page; by default
   * 64 KiB.
   */
  size_t stack_bytes;
  /**
   * Usable bytes of main's stack, a multiple of the page; by default 8 MiB.
   */
  size_t main_stack_bytes;
  /**
   * Address space for all stacks, touched on use only; by default 1 GiB.
   * When it is full, new ULTs wait until one ends.
   */
  size_t area_bytes;
  /**
   * Rounds that an idle worker searches before it lets go of its core, plus
   * one; by default 100.
   */
  size_t spin_plus_one;
};

/**
 * Particulars of a ULT; zero in a member is its default.
 */
struct tsumugi_particulars {
  /**
   * `sizeof(struct tsumugi_particulars)`.
   */
  size_t size;
  /**
   * Bytes of stack at least; by default the scheduler's ordinary size.
   */
  size_t stack_bytes;
  /**
   * A name for those who look, UTF-8, copied; by default none.
   */
  const char *name;
  /**
   * The worker to be pinned to, plus one; by default none.
   */
  size_t worker_plus_one;
  /**
   * Some of `TSUMUGI_SPAWN_*`.
   */
  size_t flags;
};

/**
 * A ULT's number: unique among those of its scheduler that are alive.
 */
struct tsumugi_id {
  /**
   * The descriptor's number.
   */
  uint32_t slot;
  /**
   * ULTs that had the descriptor before.
   */
  uint32_t generation;
};

/**
 * How the tasks of another scheduler sleep. Whatever blocks in this library
 * parks the task that calls it, and the scheduler may run others meanwhile.
 *
 * `unpark` may be called on any OS thread. A task keeps its name as long as it
 * lives, on whatever OS thread it runs, and no two that are alive share one.
 */
struct tsumugi_wait {
  /**
   * `sizeof(struct tsumugi_wait)`.
   */
  size_t size;
  /**
   * Handed to all of them.
   */
  void *context;
  /**
   * The task that calls, by a name that is not NULL; NULL if the caller is
   * no task of this scheduler.
   */
  void *(*current)(void *context);
  /**
   * Suspends the caller, which is `task`, until it is unparked, or for
   * `limit_ns` (`TSUMUGI_FOREVER`: no limit). An unpark that came before is
   * kept. It may return too early: a scheduler without a clock lets others
   * run and returns, if there is a limit.
   */
  void (*park)(void *context, void *task, uint64_t limit_ns);
  /**
   * Ends the present park of the task, or the next. Must not block.
   */
  void (*unpark)(void *context, void *task);
  /**
   * Lets other tasks run; NULL: the OS thread yields.
   */
  void (*yield_now)(void *context);
};

/**
 * A byte of any rank's memory, or `TSUMUGI_ADDR_NULL`: a word, which may go
 * wherever words go. Addresses are ordered: by rank, then region, then byte.
 */
typedef uint64_t tsumugi_addr;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * What a code means, in a sentence without a full stop; of any other number,
 * that it is no code. The text is never freed. Wait-free.
 */
const char *tsumugi_error_text(int code);

/**
 * Why the last call of this OS thread that failed did so, in a sentence that
 * names what it was about: at least the text of its code. Good until the next
 * one that fails.
 */
const char *tsumugi_reason(void);

/**
 * Prepares a scheduler; NULL for all defaults. `tsumugi_scheduler_run` or
 * `tsumugi_scheduler_start` begins.
 *
 * Errors: WORKER, STACK, MEMORY, THREAD, SIZE, NULL.
 *
 * # Safety
 *
 * `config` is NULL or valid for the bytes that it says; `out` for a write.
 */
int tsumugi_scheduler_create(const struct tsumugi_config *config,
                             struct tsumugi_scheduler **out);

/**
 * Runs `main` as the first ULT, with the calling thread as a worker, and
 * returns when it has; then the scheduler has ended: ULTs that have not are
 * cut off. What `main` answers goes to `value`, unless that is NULL. Blocks.
 *
 * Errors: RUNNING, ENDED, NULL.
 *
 * # Safety
 *
 * A live scheduler; `main(arg)` may run on any thread; `value` is NULL or
 * valid for a write.
 */
int tsumugi_scheduler_run(struct tsumugi_scheduler *scheduler,
                          void *(*main)(void*),
                          void *arg,
                          void **value);

/**
 * Starts all workers in the background. They run until
 * `tsumugi_scheduler_destroy`.
 *
 * Errors: THREAD, ENDED, NULL.
 *
 * # Safety
 *
 * A live scheduler.
 */
int tsumugi_scheduler_start(struct tsumugi_scheduler *scheduler);

/**
 * Ends a scheduler and frees it: ULTs that have not ended are cut off, and
 * whoever joins them gets ENDED. NULL is no harm. Blocks until all workers
 * have stopped. On a ULT of the same scheduler it aborts.
 *
 * # Safety
 *
 * NULL or a live scheduler, which nobody uses any more. Handles of its ULTs
 * stay valid.
 */
void tsumugi_scheduler_destroy(struct tsumugi_scheduler *scheduler);

/**
 * Starts a ULT that calls `body(arg)`, on `scheduler`, or with NULL on the
 * caller's. `particulars` may be NULL. The handle goes to `out`; NULL: the ULT
 * goes by itself. Lock-free, but for the growth of a queue or of descriptors.
 * What must not live across a suspension of it is said at the head of this file.
 *
 * Errors: NO_ULT, WORKER, STACK, ENDED, FLAGS, NAME, SIZE, NULL.
 *
 * # Safety
 *
 * `scheduler` is NULL or live; `particulars` is NULL or valid for the bytes
 * that it says; `body(arg)` may run on any thread; `out` is NULL or valid for
 * a write.
 */
int tsumugi_spawn(const struct tsumugi_scheduler *scheduler,
                  const struct tsumugi_particulars *particulars,
                  void *(*body)(void*),
                  void *arg,
                  struct tsumugi_ult **out);

/**
 * Waits for the ULT's end and ends the handle. What its body answered goes to
 * `value`, unless that is NULL. Works on ULTs, in foreign tasks and on OS
 * threads. Blocks.
 *
 * Errors: ENDED (the handle has ended too), NULL.
 *
 * # Safety
 *
 * A live handle; `value` is NULL or valid for a write.
 */
int tsumugi_join(struct tsumugi_ult *ult, void **value);

/**
 * As `tsumugi_join`, within a limit: `TSUMUGI_FOREVER` is none, and a
 * cancellation of the caller ends it too if it `is_cancellable`. Then the
 * handle stays.
 *
 * Errors: TIMED_OUT and CANCELLED, ENDED (the handle has ended too), NULL.
 *
 * # Safety
 *
 * As for `tsumugi_join`.
 */
int tsumugi_join_within(struct tsumugi_ult *ult,
                        uint64_t limit_ns,
                        bool is_cancellable,
                        void **value);

/**
 * Lets the ULT go by itself and ends the handle. Wait-free.
 *
 * Errors: NULL.
 *
 * # Safety
 *
 * A live handle.
 */
int tsumugi_detach(struct tsumugi_ult *ult);

/**
 * Asks the ULT to give up: it goes on until it looks, or waits where that ends
 * a wait.
 *
 * Errors: NULL.
 *
 * # Safety
 *
 * A live handle.
 */
int tsumugi_cancel(struct tsumugi_ult *ult);

/**
 * Whether the ULT has ended, so that a join would not wait. Wait-free.
 *
 * # Safety
 *
 * A live handle.
 */
bool tsumugi_is_finished(const struct tsumugi_ult *ult);

/**
 * The number of a ULT.
 *
 * Errors: NULL.
 *
 * # Safety
 *
 * A live handle; `out` is valid for a write.
 */
int tsumugi_id_of(const struct tsumugi_ult *ult, struct tsumugi_id *out);

/**
 * The number of the calling ULT.
 *
 * Errors: NO_ULT, NULL.
 *
 * # Safety
 *
 * `out` is valid for a write.
 */
int tsumugi_self(struct tsumugi_id *out);

/**
 * Whether somebody asked the calling ULT to give up. Wait-free.
 */
bool tsumugi_is_cancelled(void);

/**
 * Lets other ULTs run; in a foreign task or on an OS thread, others of those.
 * Suspends a ULT.
 */
void tsumugi_yield(void);

/**
 * Lets others run, this ULT first if it is ready and near.
 * Suspends a ULT.
 *
 * Errors: NULL.
 *
 * # Safety
 *
 * A live handle.
 */
int tsumugi_yield_to(const struct tsumugi_ult *ult);

/**
 * Runs `call(arg)` on the worker's own stack, which is an OS thread's like any
 * other: for what forks, or needs more stack than a ULT has. It must not wait
 * by functions of this library.
 *
 * Errors: NULL.
 *
 * # Safety
 *
 * `call(arg)` is sound.
 */
int tsumugi_on_os_stack(void (*call)(void*), void *arg);

/**
 * Sleeps until somebody unparks the caller. An unpark that came before is
 * kept, several are one. May return without a reason. Blocks.
 */
void tsumugi_park(void);

/**
 * As `tsumugi_park`, within a limit. Blocks.
 *
 * Errors: TIMED_OUT, CANCELLED.
 */
int tsumugi_park_within(uint64_t limit_ns, bool is_cancellable);

/**
 * Makes the right to unpark the caller.
 *
 * Errors: NULL.
 *
 * # Safety
 *
 * `out` is valid for a write.
 */
int tsumugi_unparker_create(struct tsumugi_unparker **out);

/**
 * Ends the present park, or the next, of whom it stands for. From any thread.
 * Lock-free; as good as a foreign scheduler's own `unpark` where that is who
 * wakes.
 *
 * Errors: NULL.
 *
 * # Safety
 *
 * A live unparker.
 */
int tsumugi_unpark(const struct tsumugi_unparker *unparker);

/**
 * Frees an unparker. NULL is no harm.
 *
 * # Safety
 *
 * NULL or a live unparker, which nobody uses any more.
 */
void tsumugi_unparker_destroy(struct tsumugi_unparker *unparker);

/**
 * Sleeps for so long, and leaves the worker to others. Answers what ended it.
 * Blocks.
 *
 * Errors: TIMED_OUT, that is, it slept; CANCELLED.
 */
int tsumugi_sleep_within(uint64_t limit_ns, bool is_cancellable);

/**
 * Sleeps for so long, and leaves the worker to others. Blocks.
 */
void tsumugi_sleep(uint64_t ns);

/**
 * Makes a mutex.
 *
 * Errors: NULL.
 *
 * # Safety
 *
 * `out` is valid for a write.
 */
int tsumugi_mutex_create(struct tsumugi_mutex **out);

/**
 * Frees a mutex. NULL is no harm.
 *
 * # Safety
 *
 * NULL or a live mutex, not locked, which nobody uses any more.
 */
void tsumugi_mutex_destroy(struct tsumugi_mutex *mutex);

/**
 * Locks; the caller sleeps until it is its turn. Blocks; one compare-and-swap
 * where nobody else is.
 *
 * Errors: NULL.
 *
 * # Safety
 *
 * A live mutex.
 */
int tsumugi_mutex_lock(struct tsumugi_mutex *mutex);

/**
 * Locks if that takes no waiting. Lock-free.
 *
 * Errors: BUSY, NULL.
 *
 * # Safety
 *
 * A live mutex.
 */
int tsumugi_mutex_try_lock(struct tsumugi_mutex *mutex);

/**
 * As `tsumugi_mutex_lock`, within a limit.
 *
 * Errors: TIMED_OUT, CANCELLED, NULL.
 *
 * # Safety
 *
 * A live mutex.
 */
int tsumugi_mutex_lock_within(struct tsumugi_mutex *mutex,
                              uint64_t limit_ns,
                              bool is_cancellable);

/**
 * Unlocks; the first of those who wait has it then. Never waits.
 *
 * Errors: NOT_LOCKED, NULL.
 *
 * # Safety
 *
 * A live mutex, which the caller has locked if anybody has.
 */
int tsumugi_mutex_unlock(struct tsumugi_mutex *mutex);

/**
 * Makes a condition variable.
 *
 * Errors: NULL.
 *
 * # Safety
 *
 * `out` is valid for a write.
 */
int tsumugi_condvar_create(struct tsumugi_condvar **out);

/**
 * Frees a condition variable. NULL is no harm.
 *
 * # Safety
 *
 * NULL or a live condition variable, which nobody uses any more.
 */
void tsumugi_condvar_destroy(struct tsumugi_condvar *condvar);

/**
 * Unlocks the mutex, sleeps until notified, and locks it again. A notice
 * between the unlock and the sleep is not lost, and there is no return without
 * a notice. Blocks.
 *
 * Errors: NOT_LOCKED, NULL.
 *
 * # Safety
 *
 * A live condition variable and a live mutex, which the caller has locked if
 * anybody has.
 */
int tsumugi_condvar_wait(struct tsumugi_condvar *condvar, struct tsumugi_mutex *mutex);

/**
 * As `tsumugi_condvar_wait`, within a limit. The mutex is locked again in
 * either case, however long that takes.
 *
 * Errors: TIMED_OUT and CANCELLED (no notice was used up), NOT_LOCKED, NULL.
 *
 * # Safety
 *
 * As for `tsumugi_condvar_wait`.
 */
int tsumugi_condvar_wait_within(struct tsumugi_condvar *condvar,
                                struct tsumugi_mutex *mutex,
                                uint64_t limit_ns,
                                bool is_cancellable);

/**
 * Wakes one that waits, if any. Never waits.
 *
 * Errors: NULL.
 *
 * # Safety
 *
 * A live condition variable.
 */
int tsumugi_condvar_notify_one(struct tsumugi_condvar *condvar);

/**
 * Wakes all that wait. Never waits.
 *
 * Errors: NULL.
 *
 * # Safety
 *
 * A live condition variable.
 */
int tsumugi_condvar_notify_all(struct tsumugi_condvar *condvar);

/**
 * Makes a key. At the end of a ULT that has a value other than NULL,
 * `destructor` is called with it on that ULT, unless it is NULL.
 *
 * Errors: NULL.
 *
 * # Safety
 *
 * `out` is valid for a write; the destructor for the values that are set.
 */
int tsumugi_key_create(void (*destructor)(void*), struct tsumugi_key **out);

/**
 * Frees a key. Values that there are under it are still destroyed at the ends
 * of their ULTs. NULL is no harm.
 *
 * # Safety
 *
 * NULL or a live key, which nobody uses any more.
 */
void tsumugi_key_destroy(struct tsumugi_key *key);

/**
 * Sets the caller's value under the key. What was there is not destroyed.
 *
 * Errors: NULL.
 *
 * # Safety
 *
 * A live key.
 */
int tsumugi_key_set(const struct tsumugi_key *key, void *value);

/**
 * The caller's value under the key; NULL if it has none.
 *
 * # Safety
 *
 * A live key.
 */
void *tsumugi_key_get(const struct tsumugi_key *key);

/**
 * Makes a scheduler known: its tasks may block on everything here. `wait` is
 * copied; the copy, a few words, is never given back. Lock-free.
 *
 * Errors: CROWDED, SIZE, NULL (also for `current`, `park` and `unpark`).
 *
 * # Safety
 *
 * `wait` is valid for the bytes that it says, and what it says about its
 * functions holds until the registration has been destroyed and none of its
 * tasks is in a call of this library. `out` is valid for a write.
 */
int tsumugi_wait_register(const struct tsumugi_wait *wait,
                          struct tsumugi_registration **out);

/**
 * Forgets a scheduler. Tasks of it that sleep are woken as before; whoever
 * blocks later is taken for an OS thread. NULL is no harm.
 *
 * # Safety
 *
 * NULL or a live registration.
 */
void tsumugi_wait_unregister(struct tsumugi_registration *registration);

/**
 * Makes this process a rank of the job that it was started in (by `tsumugi
 * run`, `mpiexec`, `srun` ...; alone it is one of one), with workers in the
 * background, and opens the global memory. Returns when all ranks have come
 * so far. Once in a process. Blocks.
 *
 * Errors: JOB, MEMORY, NULL; `tsumugi_reason` has more.
 *
 * # Safety
 *
 * `out` is valid for a write.
 */
int tsumugi_start(struct tsumugi_job **out);

/**
 * Ends what `tsumugi_start` began, and frees the job: all that was made of it
 * has ended before. Returns when all ranks have come so far. Blocks. Memory
 * that was registered where it lay is the program's own again, and all other
 * threads of the process stand still meanwhile.
 *
 * Errors: JOB, NULL.
 *
 * # Safety
 *
 * A job of `tsumugi_start`'s, which nobody uses any more.
 */
int tsumugi_end(struct tsumugi_job *job);

/**
 * Makes this process a rank, as `tsumugi_start` does, runs `main(job, arg)` on
 * a ULT, with the calling thread as a worker, and ends the rank. What `main`
 * answers goes to `value`, unless that is NULL. Once in a process. Blocks.
 *
 * Errors: JOB, MEMORY, NULL.
 *
 * # Safety
 *
 * `main(job, arg)` may run on any thread, and the job is good until it
 * returns; `value` is NULL or valid for a write.
 */
int tsumugi_run(void *(*main)(struct tsumugi_job*, void*), void *arg, void **value);

/**
 * Which rank this process is; of NULL, `UINT32_MAX`. Wait-free.
 *
 * # Safety
 *
 * NULL or a live job.
 */
uint32_t tsumugi_rank(const struct tsumugi_job *job);

/**
 * How many ranks the job has; of NULL, 0. Wait-free.
 *
 * # Safety
 *
 * NULL or a live job.
 */
uint32_t tsumugi_size(const struct tsumugi_job *job);

/**
 * The workers of the rank, to spawn ULTs on from threads that are none. They
 * are the job's: neither run, started nor destroyed. NULL of NULL.
 *
 * # Safety
 *
 * NULL or a live job.
 */
const struct tsumugi_scheduler *tsumugi_workers(const struct tsumugi_job *job);

/**
 * Waits until every rank has called it. One collective of a rank at a time.
 * Blocks.
 *
 * Errors: LOST, JOB, NULL.
 *
 * # Safety
 *
 * A live job.
 */
int tsumugi_barrier(const struct tsumugi_job *job);

/**
 * Puts every rank's `word` into `all`, in the order of the ranks. All ranks
 * call it. Blocks.
 *
 * Errors: LOST, JOB, NULL.
 *
 * # Safety
 *
 * A live job; `all` is valid for a write of as many words as there are ranks.
 */
int tsumugi_gather(const struct tsumugi_job *job, uint64_t word, uint64_t *all);

/**
 * Makes `bytes` bytes of zeroes that any rank can reach by their global
 * address, for atomics of `agent` (`TSUMUGI_AGENT_*`).
 *
 * Errors: MEMORY, CROWDED, FLAGS, NULL.
 *
 * # Safety
 *
 * A live job; `out` is valid for a write.
 */
int tsumugi_expose(const struct tsumugi_job *job,
                   size_t bytes,
                   int agent,
                   struct tsumugi_region **out);

/**
 * Gives the `bytes` bytes at `at` a global address, wherever in this process
 * they lie: parts of exposed memory as they are; of the heap, data and stacks
 * the pages become shared memory where they are, which needs a job of
 * `tsumugi_start`'s; while they become so, all other threads of the process
 * stand still, for which they get a real-time signal.
 *
 * Errors: REACH, MEMORY, CROWDED, NULL.
 *
 * # Safety
 *
 * A live job. The memory is readable and writable, and stays so until
 * `tsumugi_unregister` has returned. `out` is valid for a write.
 */
int tsumugi_register(const struct tsumugi_job *job,
                     void *at,
                     size_t bytes,
                     struct tsumugi_region **out);

/**
 * Takes the address away and frees the region; what was exposed is gone, what
 * was registered is the program's alone when this returns: nobody reads or
 * writes it any more. Later accesses by the address are STALE. Blocks: ranks
 * that have used the address are asked to forget it.
 *
 * Errors: NULL.
 *
 * # Safety
 *
 * A live job, and a live region of it, which nobody uses any more here.
 */
int tsumugi_unregister(const struct tsumugi_job *job, struct tsumugi_region *region);

/**
 * The address of a region's first byte; of NULL, `TSUMUGI_ADDR_NULL`.
 * Wait-free.
 *
 * # Safety
 *
 * NULL or a live region.
 */
tsumugi_addr tsumugi_region_addr(const struct tsumugi_region *region);

/**
 * Where a region is in this process; NULL of NULL. Wait-free.
 *
 * # Safety
 *
 * NULL or a live region.
 */
void *tsumugi_region_memory(const struct tsumugi_region *region);

/**
 * The first byte of memory that `rank` has from the start, zero at first.
 *
 * Errors: NOWHERE, NULL.
 *
 * # Safety
 *
 * A live job; `out` is valid for a write.
 */
int tsumugi_starter(const struct tsumugi_job *job, uint32_t rank, tsumugi_addr *out);

/**
 * The address `bytes` bytes further on, or back. Whether it is in the region,
 * the access checks. Wait-free.
 *
 * Errors: RANGE (it is in no region's reach), NULL.
 *
 * # Safety
 *
 * A live job; `out` is valid for a write.
 */
int tsumugi_addr_add(const struct tsumugi_job *job,
                     tsumugi_addr addr,
                     int64_t bytes,
                     tsumugi_addr *out);

/**
 * Whose memory an address is of. Wait-free.
 *
 * Errors: NOWHERE, NULL.
 *
 * # Safety
 *
 * A live job; `out` is valid for a write.
 */
int tsumugi_addr_rank(const struct tsumugi_job *job, tsumugi_addr addr, uint32_t *out);

/**
 * The global address of memory of this rank's.
 *
 * Errors: REACH (it has none), NULL.
 *
 * # Safety
 *
 * A live job; `out` is valid for a write.
 */
int tsumugi_addr_of(const struct tsumugi_job *job, const void *at, tsumugi_addr *out);

/**
 * Where `bytes` bytes at an address lie in this process: of this rank, or of
 * one of its node.
 *
 * Errors: those of `tsumugi_get`; UNSUPPORTED for a rank of another node.
 *
 * # Safety
 *
 * A live job; `out` is valid for a write.
 */
int tsumugi_addr_local(const struct tsumugi_job *job,
                       tsumugi_addr addr,
                       size_t bytes,
                       void **out);

/**
 * Reads `bytes` bytes from `from` on. 1, 2, 4 and 8 bytes that are aligned
 * are read as one. Blocks; wait-free between ranks of a node, once the table
 * of that rank was read.
 *
 * Errors: NOWHERE, STALE, RANGE, LOST, NULL.
 *
 * # Safety
 *
 * A live job; `into` is valid for a write of so many bytes.
 */
int tsumugi_get(const struct tsumugi_job *job,
                void *into,
                tsumugi_addr from,
                size_t bytes);

/**
 * Writes `bytes` bytes from `to` on, as `tsumugi_get` reads them. When it
 * returns, they are there. Blocks.
 *
 * Errors: NOWHERE, STALE, RANGE, READ_ONLY, LOST, NULL.
 *
 * # Safety
 *
 * A live job; `from` is valid for a read of so many bytes.
 */
int tsumugi_put(const struct tsumugi_job *job,
                tsumugi_addr to,
                const void *from,
                size_t bytes);

/**
 * Copies `bytes` bytes from `src` to `dst`, each of which may be any rank's.
 * Blocks.
 *
 * Errors: those of `tsumugi_put`.
 *
 * # Safety
 *
 * A live job.
 */
int tsumugi_copy(const struct tsumugi_job *job,
                 tsumugi_addr dst,
                 tsumugi_addr src,
                 size_t bytes);

/**
 * Changes the 4 bytes at `at` by `operand`, as `what` (`TSUMUGI_ATOMIC_*`)
 * says. What was there goes to `old`; NULL: nobody wants to know. Blocks.
 *
 * Errors: NOWHERE, STALE, RANGE, UNALIGNED, READ_ONLY, LOST, FLAGS, NULL.
 *
 * # Safety
 *
 * A live job; `old` is NULL or valid for a write.
 */
int tsumugi_atomic4(const struct tsumugi_job *job,
                    int what,
                    tsumugi_addr at,
                    uint32_t operand,
                    uint32_t *old);

/**
 * The same on 8 bytes.
 *
 * # Safety
 *
 * A live job; `old` is NULL or valid for a write.
 */
int tsumugi_atomic8(const struct tsumugi_job *job,
                    int what,
                    tsumugi_addr at,
                    uint64_t operand,
                    uint64_t *old);

/**
 * Stores `desired` in the 4 bytes at `at` if `expected` is there. What was
 * there goes to `old`, unless that is NULL. Blocks.
 *
 * Errors: those of `tsumugi_atomic4`.
 *
 * # Safety
 *
 * A live job; `old` is NULL or valid for a write.
 */
int tsumugi_compare_swap4(const struct tsumugi_job *job,
                          tsumugi_addr at,
                          uint32_t expected,
                          uint32_t desired,
                          uint32_t *old);

/**
 * The same on 8 bytes.
 *
 * # Safety
 *
 * A live job; `old` is NULL or valid for a write.
 */
int tsumugi_compare_swap8(const struct tsumugi_job *job,
                          tsumugi_addr at,
                          uint64_t expected,
                          uint64_t desired,
                          uint64_t *old);

/**
 * Begins to copy `bytes` bytes from `src` to `dst`, each of which may be any
 * rank's, when `after` has ended; NULL: at once. The caller sleeps only while
 * there is no room for one more. The handle goes to `out`; NULL: it goes by
 * itself, and `tsumugi_flush` knows of it.
 *
 * Errors: NULL; what goes wrong, `tsumugi_operation_wait` answers.
 *
 * # Safety
 *
 * A live job; `after` is NULL or live; `out` is NULL or valid for a write.
 */
int tsumugi_begin_copy(const struct tsumugi_job *job,
                       tsumugi_addr dst,
                       tsumugi_addr src,
                       size_t bytes,
                       const struct tsumugi_operation *after,
                       struct tsumugi_operation **out);

/**
 * Begins to write the `bytes` bytes at `from`, memory of this rank's that has
 * a global address and is left alone until the end, from `to` on; for the rest
 * as `tsumugi_begin_copy`.
 *
 * Errors: REACH (`from` has no global address), NULL.
 *
 * # Safety
 *
 * That of `tsumugi_begin_copy`.
 */
int tsumugi_begin_put(const struct tsumugi_job *job,
                      tsumugi_addr to,
                      const void *from,
                      size_t bytes,
                      const struct tsumugi_operation *after,
                      struct tsumugi_operation **out);

/**
 * Begins to read `bytes` bytes from `from` on to `into`, memory of this
 * rank's that has a global address; for the rest as `tsumugi_begin_copy`.
 *
 * Errors: REACH (`into` has no global address), NULL.
 *
 * # Safety
 *
 * That of `tsumugi_begin_copy`.
 */
int tsumugi_begin_get(const struct tsumugi_job *job,
                      void *into,
                      tsumugi_addr from,
                      size_t bytes,
                      const struct tsumugi_operation *after,
                      struct tsumugi_operation **out);

/**
 * Begins to change the 4 bytes at `at`, as `tsumugi_atomic4` does; for the
 * rest as `tsumugi_begin_copy`.
 *
 * Errors: FLAGS, NULL.
 *
 * # Safety
 *
 * That of `tsumugi_begin_copy`.
 */
int tsumugi_begin_atomic4(const struct tsumugi_job *job,
                          int what,
                          tsumugi_addr at,
                          uint32_t operand,
                          const struct tsumugi_operation *after,
                          struct tsumugi_operation **out);

/**
 * The same on 8 bytes.
 *
 * Errors: FLAGS, NULL.
 *
 * # Safety
 *
 * That of `tsumugi_begin_copy`.
 */
int tsumugi_begin_atomic8(const struct tsumugi_job *job,
                          int what,
                          tsumugi_addr at,
                          uint64_t operand,
                          const struct tsumugi_operation *after,
                          struct tsumugi_operation **out);

/**
 * Whether an operation has ended, so that a wait would not sleep; true of
 * NULL. Never waits.
 *
 * # Safety
 *
 * NULL or a live operation.
 */
bool tsumugi_operation_test(const struct tsumugi_operation *operation);

/**
 * Waits until an operation has ended, that is, its bytes are there, and ends
 * the handle. Of an atomic, what was there goes to `old`, unless that is NULL.
 * Blocks.
 *
 * Errors: those of `tsumugi_put` and `tsumugi_atomic4`: some of it may have
 * been done.
 *
 * # Safety
 *
 * A live operation; `old` is NULL or valid for a write.
 */
int tsumugi_operation_wait(struct tsumugi_operation *operation, uint64_t *old);

/**
 * Ends the handle; the operation goes on by itself. NULL is no harm. Never
 * waits.
 *
 * # Safety
 *
 * NULL or a live operation.
 */
void tsumugi_operation_let_go(struct tsumugi_operation *operation);

/**
 * Waits until all that this rank has begun so far, and touches memory of
 * `rank`, has ended. Blocks.
 *
 * Errors: NOWHERE, NULL.
 *
 * # Safety
 *
 * A live job.
 */
int tsumugi_flush(const struct tsumugi_job *job, uint32_t rank);

/**
 * Waits until all that this rank has begun so far has ended. Blocks.
 *
 * Errors: NULL.
 *
 * # Safety
 *
 * A live job.
 */
int tsumugi_flush_all(const struct tsumugi_job *job);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* TSUMUGI_H */
