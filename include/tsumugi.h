/* tsumugi: user-level threads and their synchronization, schedulers of other
 * libraries, jobs of several ranks, and the memory of all ranks. Generated from
 * capi/src by cbindgen; do not edit.
 *
 * A function that can fail returns TSUMUGI_OK or a negative code;
 * tsumugi_error_text has the text of a code ("Errors: NULL" means
 * TSUMUGI_ERROR_NULL). A function that makes an object writes it to an
 * out-parameter, only on success. A struct that the caller fills begins with its
 * own size, so that later versions can add members; zero in a member is its
 * default. A handle belongs to the caller until the function that ends it. Neither
 * a panic nor a C++ exception crosses the border: it aborts the process.
 *
 * Suspension: after each call that suspends a ULT, the ULT may continue on another
 * OS thread. Such calls are all that say "Blocks", tsumugi_yield, and a spawn with
 * TSUMUGI_SPAWN_CHILD_FIRST. Data that belongs to an OS thread must not be kept
 * across such a call: the address of a _Thread_local variable (also of errno), a
 * locked pthread_mutex_t, a locked FILE. A compiler may keep such an address even
 * where the source takes it again: take it in a function that is not inlined. A
 * ULT that is pinned to a worker stays on its thread, but other ULTs use that
 * thread while it is suspended. Nothing checks these rules in C.
 *
 * Contents. The constants and the types come first, then the functions, both in this
 * order:
 *
 *   codes and reasons          tsumugi_error_text
 *   schedulers, ULTs           tsumugi_scheduler_create, tsumugi_spawn
 *   parking, locks, keys       tsumugi_park, tsumugi_mutex_create, tsumugi_key_create
 *   other schedulers           tsumugi_wait_register
 *   jobs, collectives          tsumugi_start, tsumugi_barrier
 *   memory with an address     tsumugi_expose
 *   gets, puts, atomics        tsumugi_get, tsumugi_put, tsumugi_atomic8
 *   operations in progress     tsumugi_begin_copy
 *   signals and waits          tsumugi_put_signal, tsumugi_wait_until
 *   the private heap           tsumugi_malloc
 *   messages                   tsumugi_comm_open, tsumugi_send, tsumugi_isend
 *   groups, their collectives  tsumugi_group_split, tsumugi_group_allreduce
 *   active messages            tsumugi_handler, tsumugi_call
 *   locks of all ranks         tsumugi_rank_lock_create
 *   windows                    tsumugi_window_create, tsumugi_window_lock
 *   the global heap            tsumugi_heap_create
 *   deques of work             tsumugi_deque_create, tsumugi_deque_steal
 *   arrays of all ranks        tsumugi_array_create, tsumugi_array_checkout
 */

#ifndef TSUMUGI_H
#define TSUMUGI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * The first number of the header's version.
 */
#define TSUMUGI_VERSION_MAJOR 0

/**
 * The second number; before version 1.0, another one may be another interface.
 */
#define TSUMUGI_VERSION_MINOR 1

/**
 * The third number.
 */
#define TSUMUGI_VERSION_PATCH 0

/**
 * All three numbers as one, which grows with each version:
 * `major * 10000 + minor * 100 + patch`.
 */
#define TSUMUGI_VERSION 100

/**
 * The call has succeeded.
 */
#define TSUMUGI_OK 0

/**
 * A pointer is null that must not be null.
 */
#define TSUMUGI_ERROR_NULL -1

/**
 * The `size` of a struct is not one that this library accepts, or a member that
 * this library does not have is not zero.
 */
#define TSUMUGI_ERROR_SIZE -2

/**
 * A flag does not exist.
 */
#define TSUMUGI_ERROR_FLAGS -3

/**
 * A name is not UTF-8.
 */
#define TSUMUGI_ERROR_NAME -4

/**
 * The scheduler cannot have so many workers, or it has no worker of this number.
 */
#define TSUMUGI_ERROR_WORKER -5

/**
 * A stack cannot be of this size, or the memory of all stacks is too small.
 */
#define TSUMUGI_ERROR_STACK -6

/**
 * The system, or the partition of the rank, has no memory left for the request.
 */
#define TSUMUGI_ERROR_MEMORY -7

/**
 * The system refused to start a thread.
 */
#define TSUMUGI_ERROR_THREAD -8

/**
 * The scheduler is running already.
 */
#define TSUMUGI_ERROR_RUNNING -9

/**
 * The scheduler has ended, or ended before the ULT did; the object of the handle has
 * ended, or the rank has.
 */
#define TSUMUGI_ERROR_ENDED -10

/**
 * The caller is not a ULT.
 */
#define TSUMUGI_ERROR_NO_ULT -11

/**
 * The time limit has passed.
 */
#define TSUMUGI_ERROR_TIMED_OUT -12

/**
 * The wait of the caller was cancelled.
 */
#define TSUMUGI_ERROR_CANCELLED -13

/**
 * The call would have to wait.
 */
#define TSUMUGI_ERROR_BUSY -14

/**
 * The lock is not locked, or not in this way.
 */
#define TSUMUGI_ERROR_NOT_LOCKED -15

/**
 * There are too many foreign schedulers, regions, messages in progress or
 * communicators.
 */
#define TSUMUGI_ERROR_CROWDED -16

/**
 * The process could not become a rank of its job, or the job has failed.
 */
#define TSUMUGI_ERROR_JOB -17

/**
 * The address belongs to no rank.
 */
#define TSUMUGI_ERROR_NOWHERE -18

/**
 * No region is registered under the address, or no longer.
 */
#define TSUMUGI_ERROR_STALE -19

/**
 * Some of the bytes lie outside of their region.
 */
#define TSUMUGI_ERROR_RANGE -20

/**
 * An atomic operation is not at a multiple of its size.
 */
#define TSUMUGI_ERROR_UNALIGNED -21

/**
 * The region is read-only.
 */
#define TSUMUGI_ERROR_READ_ONLY -22

/**
 * A rank has died.
 */
#define TSUMUGI_ERROR_LOST -23

/**
 * The operation needs memory of another rank than the one given.
 */
#define TSUMUGI_ERROR_ELSEWHERE -24

/**
 * The path to the memory has no such operation.
 */
#define TSUMUGI_ERROR_UNSUPPORTED -25

/**
 * Other ranks cannot reach the memory, or it has no global address.
 */
#define TSUMUGI_ERROR_REACH -26

/**
 * The job has no such rank, or the group no such member.
 */
#define TSUMUGI_ERROR_RANK -27

/**
 * The message or the answer is longer than the room for it; its beginning is there.
 */
#define TSUMUGI_ERROR_TRUNCATED -28

/**
 * The length is more than the call can carry, or differs from that of another rank.
 */
#define TSUMUGI_ERROR_LENGTH -29

/**
 * The handler of the other rank has failed, or the bytes could not be moved.
 */
#define TSUMUGI_ERROR_FAILED -30

/**
 * The rank has no handler of this number.
 */
#define TSUMUGI_ERROR_HANDLER -31

/**
 * The value is none of those that the parameter can have.
 */
#define TSUMUGI_ERROR_VALUE -32

/**
 * A hold or a checkout of this rank excludes the new one.
 */
#define TSUMUGI_ERROR_HELD -33

/**
 * Whenever the ULT becomes ready, it runs before other ready ULTs.
 */
#define TSUMUGI_SPAWN_URGENT 1

/**
 * The ULT runs at once, and the caller continues later.
 */
#define TSUMUGI_SPAWN_CHILD_FIRST 2

/**
 * The ULT keeps its own floating-point control words.
 */
#define TSUMUGI_SPAWN_KEEP_FP_CONTROL 4

/**
 * The time limit that never passes.
 */
#define TSUMUGI_FOREVER UINT64_MAX

/**
 * The address of no byte.
 */
#define TSUMUGI_ADDR_NULL 0

/**
 * Processors carry out the atomic operations on a region.
 */
#define TSUMUGI_AGENT_CPU 0

/**
 * The network device carries out the atomic operations on a region where it can,
 * also for ranks of the same node; elsewhere processors do.
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
 * The signal sets the word to its value.
 */
#define TSUMUGI_SIGNAL_SET 0

/**
 * The signal adds its value to the word, wrapping.
 */
#define TSUMUGI_SIGNAL_ADD 1

/**
 * The wait ends when the word equals the value.
 */
#define TSUMUGI_UNTIL_EQUAL 0

/**
 * The wait ends when the word no longer equals the value.
 */
#define TSUMUGI_UNTIL_NOT_EQUAL 1

/**
 * The wait ends when the word, as a count that wraps, has reached the value.
 */
#define TSUMUGI_UNTIL_AT_LEAST 2

/**
 * The wait ends when one of the bits of the value is set in the word.
 */
#define TSUMUGI_UNTIL_ANY_BIT 3

/**
 * In place of a source: a message from any rank.
 */
#define TSUMUGI_ANY_SOURCE -1

/**
 * In place of a tag: a message with any tag.
 */
#define TSUMUGI_ANY_TAG -1

/**
 * In place of a color: this member gets no group.
 */
#define TSUMUGI_NO_COLOR -1

/**
 * The sum; integers wrap. Of floats the same at all members, and in every run with the
 * same numbers of members and elements.
 */
#define TSUMUGI_SUM 0

/**
 * The product; integers wrap.
 */
#define TSUMUGI_PROD 1

/**
 * The smaller value. Of floats a NaN loses.
 */
#define TSUMUGI_MIN 2

/**
 * The greater value. Of floats a NaN loses.
 */
#define TSUMUGI_MAX 3

/**
 * The bits that both have; of integers alone, as the next two.
 */
#define TSUMUGI_AND 4

/**
 * The bits that one of them has.
 */
#define TSUMUGI_OR 5

/**
 * The bits that exactly one of them has.
 */
#define TSUMUGI_XOR 6

/**
 * Elements are `uint64_t`.
 */
#define TSUMUGI_U64 0

/**
 * Elements are `int64_t`.
 */
#define TSUMUGI_I64 1

/**
 * Elements are `double`.
 */
#define TSUMUGI_F64 2

/**
 * Elements are `uint32_t`.
 */
#define TSUMUGI_U32 3

/**
 * Elements are `int32_t`.
 */
#define TSUMUGI_I32 4

/**
 * Elements are `float`.
 */
#define TSUMUGI_F32 5

/**
 * Elements are `uint16_t`.
 */
#define TSUMUGI_U16 6

/**
 * Elements are `int16_t`.
 */
#define TSUMUGI_I16 7

/**
 * Elements are `uint8_t`.
 */
#define TSUMUGI_U8 8

/**
 * Elements are `int8_t`.
 */
#define TSUMUGI_I8 9

/**
 * `function` commutes: values may be combined in any order, for which there are faster
 * algorithms.
 */
#define TSUMUGI_COMMUTES 1

/**
 * The number of bytes that an answer can have.
 */
#define TSUMUGI_ANSWER_BYTES_MAX 224

/**
 * Each hold excludes all others, first come, first served.
 */
#define TSUMUGI_RANK_LOCK_MUTEX 0

/**
 * Readers wait for a writer that holds the lock, writers for all readers. Writers may
 * starve.
 */
#define TSUMUGI_RANK_LOCK_READERS 1

/**
 * Phases: a reader waits for one writer at most, a writer for the readers that came
 * before it and for the writers before it.
 */
#define TSUMUGI_RANK_LOCK_NEUTRAL 2

/**
 * A writer that waits behind another has the lock before any reader. Readers may
 * starve.
 */
#define TSUMUGI_RANK_LOCK_WRITERS 3

/**
 * Together with other shared holds; of a `TSUMUGI_RANK_LOCK_MUTEX` exclusively.
 */
#define TSUMUGI_SHARED 0

/**
 * Alone.
 */
#define TSUMUGI_EXCLUSIVE 1

/**
 * The locks of a window are those of `TSUMUGI_WINDOW_EACH` up to 16 ranks, and those of
 * `TSUMUGI_WINDOW_TREE` beyond.
 */
#define TSUMUGI_WINDOW_DEFAULT 0

/**
 * A lock for each target; a hold of all targets takes all of them.
 */
#define TSUMUGI_WINDOW_EACH 1

/**
 * A lock for each target, and a tree over the nodes for holds of all targets.
 */
#define TSUMUGI_WINDOW_TREE 2

/**
 * One lock for the window; for comparison.
 */
#define TSUMUGI_WINDOW_GLOBAL 3

/**
 * A word for holds of all targets, and one for each target; for comparison.
 */
#define TSUMUGI_WINDOW_TWO_LEVEL 4

/**
 * Contiguous runs of pages: rank 0 has the first run.
 */
#define TSUMUGI_ARRAY_BLOCK 0

/**
 * One page after the other, rank by rank.
 */
#define TSUMUGI_ARRAY_CYCLIC 1

/**
 * Ranks find pages by remote reads, writes and atomics alone.
 */
#define TSUMUGI_ARRAY_ATOMICS 0

/**
 * The same, by the network device, where there is one that can.
 */
#define TSUMUGI_ARRAY_DEVICE 1

/**
 * The home of a page answers messages; for comparison, and for up to 64 ranks.
 */
#define TSUMUGI_ARRAY_MESSAGES 2

/**
 * The elements are read.
 */
#define TSUMUGI_CHECKOUT_READ 0

/**
 * All elements are written. Their old values are not fetched: an element that the
 * program does not write then has an arbitrary value, in the array, too.
 */
#define TSUMUGI_CHECKOUT_WRITE 1

/**
 * The elements are read and written.
 */
#define TSUMUGI_CHECKOUT_READ_WRITE 2

/**
 * An array over all ranks. Accesses to one element of 1, 2, 4 or 8 bytes are
 * linearizable, whichever rank owns its page; a larger element may be seen half
 * written. Any thread and any ULT may use it.
 */
struct tsumugi_array;

/**
 * Elements that are lent to the program until `tsumugi_checkin`. It belongs to no
 * thread.
 */
struct tsumugi_checkout;

/**
 * A communicator: a message that is sent through it can only be received through the
 * same communicator of another rank, so the messages of one part of a program do not
 * mix with those of another. Messages from one rank to another through one
 * communicator are received in the order in which they were sent, as far as they match
 * the receives. Any thread and any ULT may use it.
 */
struct tsumugi_comm;

/**
 * A condition variable, used with a mutex.
 */
struct tsumugi_condvar;

/**
 * The deques of all ranks, with items of one size. One thread of a rank at a time pushes
 * and pops; any thread and any ULT steals.
 */
struct tsumugi_deque;

/**
 * An access epoch: the memory of some ranks is open to this rank, until it completes.
 * The handle lives until `tsumugi_epoch_complete`.
 */
struct tsumugi_epoch;

/**
 * An exposure epoch: this rank's memory is open to some ranks, until they have
 * completed. The handle lives until `tsumugi_exposure_wait`.
 */
struct tsumugi_exposure;

/**
 * Some ranks of a job, in an order: the members, which are named by their place, from
 * 0 on. All members call the same collectives in the same order, each from one thread at
 * a time. Any thread and any ULT may use it.
 */
struct tsumugi_group;

/**
 * A heap on every rank, from which any rank allocates. Any thread and any ULT may use
 * it. A rank's part lives as long as the rank has the handle.
 */
struct tsumugi_heap;

/**
 * A lock on one target of a window or on all of them. The handle lives until
 * `tsumugi_hold_release`.
 */
struct tsumugi_hold;

/**
 * This process as a rank of its job, with the global memory of all ranks. Any
 * thread and any ULT may use it.
 */
struct tsumugi_job;

/**
 * A key: under it each ULT, and each OS thread that runs no ULT, has a value of
 * its own, NULL at first.
 */
struct tsumugi_key;

/**
 * A latch: a count that goes down to 0, once.
 */
struct tsumugi_latch;

/**
 * A meeting point of a fixed number of ULTs or OS threads, for repeated use.
 */
struct tsumugi_meeting;

/**
 * A mutual exclusion lock, first come, first served, for ULTs, foreign tasks and
 * OS threads alike. It may be unlocked on another OS thread than it was locked on.
 */
struct tsumugi_mutex;

/**
 * An operation that was begun; the handle lives until a wait or a let-go ends it.
 */
struct tsumugi_operation;

/**
 * A lock for the threads and ULTs of all ranks. Without contention a shared hold is
 * one fetch-and-add, and its end another. A waiter sleeps until the holder in front
 * of it writes a word of the waiter's own memory.
 */
struct tsumugi_rank_lock;

/**
 * Memory of this rank that has a global address.
 */
struct tsumugi_region;

/**
 * The registration of a foreign scheduler.
 */
struct tsumugi_registration;

/**
 * A message or a collective that was begun; the handle lives until a wait or a test ends
 * it.
 */
struct tsumugi_request;

/**
 * A lock that many threads may have for reading, or one for writing; first come, first
 * served.
 */
struct tsumugi_rwlock;

/**
 * A scheduler: workers and their ULTs. A process may have any number of
 * schedulers.
 */
struct tsumugi_scheduler;

/**
 * A number of permits, handed out first come, first served.
 */
struct tsumugi_semaphore;

/**
 * The right to join a ULT, once.
 */
struct tsumugi_ult;

/**
 * The right to unpark one ULT, foreign task or OS thread. It may outlive that
 * thread: then an unpark has no effect, or another thread returns from one park
 * without a reason.
 */
struct tsumugi_unparker;

/**
 * An array of bytes on every rank, all of the same length, and its locks. Any thread
 * and any ULT may use it.
 */
struct tsumugi_window;

/**
 * The configuration of a scheduler; zero in a member is its default.
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
   * Address space for all stacks, backed by memory on first use only; by default
   * 1 GiB. When it is full, new ULTs wait until a ULT ends.
   */
  size_t area_bytes;
  /**
   * Rounds that an idle worker searches for work before it yields its core, plus
   * one; by default 100.
   */
  size_t spin_plus_one;
};

/**
 * The number of a ULT: unique among the live ULTs of its scheduler.
 */
struct tsumugi_id {
  /**
   * The number of the ULT's descriptor.
   */
  uint32_t slot;
  /**
   * How many ULTs have used the descriptor before.
   */
  uint32_t generation;
};

/**
 * Options of a new ULT; zero in a member is its default.
 */
struct tsumugi_particulars {
  /**
   * `sizeof(struct tsumugi_particulars)`.
   */
  size_t size;
  /**
   * Minimum size of the stack in bytes; by default the scheduler's ordinary
   * size.
   */
  size_t stack_bytes;
  /**
   * A name for debuggers and traces, UTF-8, copied; by default none.
   */
  const char *name;
  /**
   * The worker to which the ULT is pinned, plus one; by default none.
   */
  size_t worker_plus_one;
  /**
   * A combination of `TSUMUGI_SPAWN_*`.
   */
  size_t flags;
};

/**
 * Whether an initialization was done. All bytes zero: it was not.
 */
struct tsumugi_once {
  /**
   * The library's own.
   */
  uint32_t state;
};

/**
 * How the tasks of another scheduler sleep. A blocking call of this library parks
 * the calling task, and its scheduler may run other tasks meanwhile.
 *
 * `unpark` may be called on any OS thread. A task keeps its name as long as it
 * lives, on whatever OS thread it runs, and no two live tasks have the same name.
 */
struct tsumugi_wait {
  /**
   * `sizeof(struct tsumugi_wait)`.
   */
  size_t size;
  /**
   * The first argument of all the functions.
   */
  void *context;
  /**
   * The name of the calling task, not NULL; NULL if the caller is no task of
   * this scheduler.
   */
  void *(*current)(void *context);
  /**
   * Suspends the caller, which is `task`, until it is unparked, or for
   * `limit_ns` (`TSUMUGI_FOREVER`: no limit). An unpark that came before the
   * park is kept. The function may return too early: if there is a limit, a
   * scheduler without a clock lets other tasks run and returns.
   */
  void (*park)(void *context, void *task, uint64_t limit_ns);
  /**
   * Ends the present park of the task, or its next park. Must not block.
   */
  void (*unpark)(void *context, void *task);
  /**
   * Lets other tasks run; if it is NULL, the OS thread yields.
   */
  void (*yield_now)(void *context);
};

/**
 * The address of a byte of any rank's memory, or `TSUMUGI_ADDR_NULL`. It is a
 * plain word: it may be stored and sent. Addresses are ordered by rank, then
 * region, then byte.
 */
typedef uint64_t tsumugi_addr;

/**
 * A message that has come.
 */
struct tsumugi_received {
  /**
   * The rank that sent it.
   */
  uint32_t source;
  /**
   * Its tag.
   */
  uint32_t tag;
  /**
   * Its length, also where that is more than the room for it.
   */
  size_t bytes;
};

/**
 * How elements are combined: by `what`, on elements of the type `element`; or, if
 * `function` is not NULL, by that. All zeroes but for the size: the sum of `uint64_t`.
 */
struct tsumugi_reduction {
  /**
   * `sizeof(struct tsumugi_reduction)`.
   */
  size_t size;
  /**
   * The operation: `TSUMUGI_SUM` and the others.
   */
  uint32_t what;
  /**
   * The type of an element: `TSUMUGI_U64` and the others.
   */
  uint32_t element;
  /**
   * An operation of the program's own, which is associative: writes the combined values
   * of `left`, from lower members, and of `right`, from higher ones, to `into`, which is
   * `left` or `right`, `count` times. It may run on any thread, also between the
   * beginning of a collective and its end, and must not block. The elements are aligned
   * as the buffers of the collective are.
   */
  void (*function)(void *context,
                   const void *left,
                   const void *right,
                   void *into,
                   size_t count);
  /**
   * The first argument of `function`.
   */
  void *context;
  /**
   * The bytes of an element of `function`.
   */
  size_t element_bytes;
  /**
   * `TSUMUGI_COMMUTES`, or 0.
   */
  size_t flags;
};

/**
 * A function for the messages of a number: `from` is the rank of the caller, `bytes` the
 * message, `answer` has room for `TSUMUGI_ANSWER_BYTES_MAX` bytes. Returns the number
 * of bytes of the answer; a larger number is a failure, of which the caller is told.
 * `bytes` and `answer` are valid until the function returns.
 */
typedef size_t (*tsumugi_handler_function)(void *arg,
                                           uint32_t from,
                                           const void *bytes,
                                           size_t count,
                                           void *answer);

/**
 * The shape of an array.
 */
struct tsumugi_array_options {
  /**
   * `sizeof(struct tsumugi_array_options)`.
   */
  size_t size;
  /**
   * The number of elements.
   */
  size_t len;
  /**
   * The bytes of an element.
   */
  size_t element_bytes;
  /**
   * The number of elements in a page; 0: as many as fit in 4 KiB.
   */
  size_t page_len;
  /**
   * Bytes of the pages of which a rank keeps copies for checkouts; 0: 16 MiB.
   */
  size_t cached_bytes;
  /**
   * The number of pages of which a rank knows the owners; 0: 1,024.
   */
  uint32_t known;
  /**
   * The number of pages that a rank can own at a time; 0: all of them.
   */
  uint32_t room;
  /**
   * Which rank has which page at first: `TSUMUGI_ARRAY_BLOCK`, `TSUMUGI_ARRAY_CYCLIC`.
   */
  uint32_t first;
  /**
   * How ranks find pages: `TSUMUGI_ARRAY_ATOMICS` and the others.
   */
  uint32_t directory;
};

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The version of the library with which the program runs, as `TSUMUGI_VERSION` is
 * that of the header with which it was compiled. Wait-free.
 */
uint32_t tsumugi_version(void);

/**
 * The version of the library as a text, such as "0.1.0"; never freed. Wait-free.
 */
const char *tsumugi_version_text(void);

/**
 * The meaning of a code, as a sentence without a full stop; for any other number,
 * a text that the number is no code. The text is never freed. Wait-free.
 */
const char *tsumugi_error_text(int code);

/**
 * The reason of the last failure of this OS thread that has one: a sentence that
 * names the object of the failure; empty if there was none. A failure without a
 * reason (such as FLAGS) leaves the string as it was: its code says all. From the
 * signals on in this header, each failure has a reason, which names the argument
 * that was NULL, the handle that has ended, or the value that was wrong. The string
 * is valid until the next call of this OS thread that fails.
 */
const char *tsumugi_reason(void);

/**
 * Prepares a scheduler; NULL stands for all defaults. `tsumugi_scheduler_run` or
 * `tsumugi_scheduler_start` starts it.
 *
 * Errors: WORKER, STACK, MEMORY, THREAD, SIZE, NULL.
 *
 * # Safety
 *
 * `config` is NULL or valid for a read of as many bytes as its `size` states;
 * `out` is valid for a write.
 */
int tsumugi_scheduler_create(const struct tsumugi_config *config,
                             struct tsumugi_scheduler **out);

/**
 * Runs `main` as the first ULT, with the calling thread as a worker, and returns
 * when `main` has returned. Then the scheduler has ended, and ULTs that have not
 * ended are cut off: they never finish. Writes the return value of `main` to
 * `value`, unless `value` is NULL. Blocks.
 *
 * Errors: RUNNING, ENDED, NULL.
 *
 * # Safety
 *
 * `scheduler` is a live scheduler; `main(arg)` may run on any thread; `value` is
 * NULL or valid for a write.
 */
int tsumugi_scheduler_run(struct tsumugi_scheduler *scheduler,
                          void *(*main)(void*),
                          void *arg,
                          void **value);

/**
 * Starts all workers in the background. They run until
 * `tsumugi_scheduler_destroy`.
 *
 * Errors: THREAD, RUNNING (a thread has entered it), ENDED, NULL.
 *
 * # Safety
 *
 * `scheduler` is a live scheduler.
 */
int tsumugi_scheduler_start(struct tsumugi_scheduler *scheduler);

/**
 * Makes the caller a ULT of the scheduler, on the stack that it has, and its OS thread
 * the last worker: a program's `main` can spawn and wait as any ULT. From then on each
 * call that suspends may continue the caller on another OS thread, until it leaves.
 * Suspends the caller.
 *
 * Errors: RUNNING (all workers run, or the caller is a ULT already), ENDED, UNSUPPORTED
 * (on another system than Linux on x86-64, or under a sanitizer), NULL.
 *
 * # Safety
 *
 * `scheduler` is a live scheduler.
 */
int tsumugi_scheduler_enter(struct tsumugi_scheduler *scheduler);

/**
 * Ends a scheduler that the caller has entered: the caller is an ordinary thread again,
 * the one that has entered. ULTs that have not ended are cut off. Blocks until all
 * workers have stopped.
 *
 * Errors: NO_ULT (the caller is not the ULT that has entered), NULL.
 *
 * # Safety
 *
 * `scheduler` is a live scheduler.
 */
int tsumugi_scheduler_leave(struct tsumugi_scheduler *scheduler);

/**
 * Ends a scheduler and frees it. ULTs that have not ended are cut off, and joins
 * of them return ENDED. NULL is allowed. Blocks until all workers have stopped.
 * Aborts the process if a ULT of the same scheduler calls it.
 *
 * # Safety
 *
 * `scheduler` is NULL or a live scheduler; no thread uses it any more. Handles of
 * its ULTs stay valid.
 */
void tsumugi_scheduler_destroy(struct tsumugi_scheduler *scheduler);

/**
 * Waits until the ULT has ended, and ends the handle. Writes the return value of
 * its body to `value`, unless `value` is NULL. The caller may be a ULT, a foreign
 * task or an OS thread. Blocks.
 *
 * Errors: ENDED (the handle has ended too), NULL.
 *
 * # Safety
 *
 * `ult` is a live handle; `value` is NULL or valid for a write.
 */
int tsumugi_join(struct tsumugi_ult *ult, void **value);

/**
 * Joins as `tsumugi_join` does, within a time limit; `TSUMUGI_FOREVER` is no
 * limit. If `is_cancellable` is true, a cancellation of the caller also ends the
 * wait. When the wait ends early, the handle stays live.
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
 * Detaches the ULT and ends the handle. Wait-free.
 *
 * Errors: NULL.
 *
 * # Safety
 *
 * `ult` is a live handle.
 */
int tsumugi_detach(struct tsumugi_ult *ult);

/**
 * Requests that the ULT give up. The ULT goes on until it checks for the request,
 * or until a wait that a cancellation can end.
 *
 * Errors: NULL.
 *
 * # Safety
 *
 * `ult` is a live handle.
 */
int tsumugi_cancel(struct tsumugi_ult *ult);

/**
 * Whether the ULT has ended, so that a join would not wait. Wait-free.
 *
 * # Safety
 *
 * `ult` is a live handle.
 */
bool tsumugi_is_finished(const struct tsumugi_ult *ult);

/**
 * The number of a ULT.
 *
 * Errors: NULL.
 *
 * # Safety
 *
 * `ult` is a live handle; `out` is valid for a write.
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
 * Whether the calling ULT was requested to give up, by `tsumugi_cancel`.
 * Wait-free.
 */
bool tsumugi_is_cancelled(void);

/**
 * Lets other ULTs run; in a foreign task or on an OS thread, other tasks or
 * threads. Suspends a ULT.
 */
void tsumugi_yield(void);

/**
 * Lets other ULTs run, and `ult` first if it is ready and in reach of this worker.
 * Suspends a ULT.
 *
 * Errors: NULL.
 *
 * # Safety
 *
 * `ult` is a live handle.
 */
int tsumugi_yield_to(const struct tsumugi_ult *ult);

/**
 * Runs `call(arg)` on the worker's own stack, which is the stack of an OS thread:
 * for a function that forks, or that needs more stack than a ULT has. The function
 * must not block by calls of this library.
 *
 * Errors: NULL.
 *
 * # Safety
 *
 * `call(arg)` is sound on this thread.
 */
int tsumugi_on_os_stack(void (*call)(void*), void *arg);

/**
 * Starts a ULT that calls `body(arg)` on `scheduler`, or on the caller's scheduler
 * if that is NULL. `particulars` may be NULL. The handle is written to `out`; if
 * `out` is NULL, the ULT is detached. Lock-free, except when a queue or the table
 * of descriptors grows. The head of this file lists what must not live across a
 * suspension of the ULT.
 *
 * Errors: NO_ULT, WORKER, STACK, ENDED, FLAGS, NAME, SIZE, NULL.
 *
 * # Safety
 *
 * `scheduler` is NULL or live; `particulars` is NULL or valid for a read of as
 * many bytes as its `size` states; `body(arg)` may run on any thread; `out` is
 * NULL or valid for a write.
 */
int tsumugi_spawn(const struct tsumugi_scheduler *scheduler,
                  const struct tsumugi_particulars *particulars,
                  void *(*body)(void*),
                  void *arg,
                  struct tsumugi_ult **out);

/**
 * The number of the worker that the calling ULT is on, from 0. It may be another one
 * after each call that suspends the ULT, unless the ULT is pinned. Wait-free.
 *
 * Errors: NO_ULT, NULL.
 *
 * # Safety
 *
 * `out` is valid for a write.
 */
int tsumugi_worker_number(size_t *out);

/**
 * How many workers a scheduler has, or the caller's scheduler if that is NULL; 0 if the
 * caller is no ULT. Wait-free.
 *
 * # Safety
 *
 * `scheduler` is NULL or a live scheduler.
 */
size_t tsumugi_worker_count(const struct tsumugi_scheduler *scheduler);

/**
 * Sleeps until another thread unparks the caller. An unpark that came before the
 * park is kept, and several unparks count as one. May return without a reason.
 * Blocks.
 */
void tsumugi_park(void);

/**
 * Parks as `tsumugi_park` does, within a time limit. Blocks.
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
 * Ends the present park of the thread that the unparker stands for, or its next
 * park. May be called from any thread. Lock-free, unless the thread is a task of a
 * foreign scheduler: then as good as the `unpark` of that scheduler.
 *
 * Errors: NULL.
 *
 * # Safety
 *
 * `unparker` is a live unparker.
 */
int tsumugi_unpark(const struct tsumugi_unparker *unparker);

/**
 * Frees an unparker. NULL is allowed.
 *
 * # Safety
 *
 * `unparker` is NULL or a live unparker; no thread uses it any more.
 */
void tsumugi_unparker_destroy(struct tsumugi_unparker *unparker);

/**
 * Sleeps for `limit_ns` nanoseconds, while other ULTs use the worker. Returns what
 * ended the sleep. Blocks.
 *
 * Errors: TIMED_OUT if the whole time has passed; CANCELLED.
 */
int tsumugi_sleep_within(uint64_t limit_ns, bool is_cancellable);

/**
 * Sleeps for `ns` nanoseconds, while other ULTs use the worker. Blocks.
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
 * Frees a mutex. NULL is allowed.
 *
 * # Safety
 *
 * `mutex` is NULL or a live mutex that is not locked; no thread uses it any more.
 */
void tsumugi_mutex_destroy(struct tsumugi_mutex *mutex);

/**
 * Locks the mutex; the caller sleeps until it is its turn. Blocks; one
 * compare-and-swap when the mutex is free.
 *
 * Errors: NULL.
 *
 * # Safety
 *
 * `mutex` is a live mutex.
 */
int tsumugi_mutex_lock(struct tsumugi_mutex *mutex);

/**
 * Locks the mutex if that needs no waiting. Lock-free.
 *
 * Errors: BUSY, NULL.
 *
 * # Safety
 *
 * `mutex` is a live mutex.
 */
int tsumugi_mutex_try_lock(struct tsumugi_mutex *mutex);

/**
 * Locks as `tsumugi_mutex_lock` does, within a time limit.
 *
 * Errors: TIMED_OUT, CANCELLED, NULL.
 *
 * # Safety
 *
 * `mutex` is a live mutex.
 */
int tsumugi_mutex_lock_within(struct tsumugi_mutex *mutex,
                              uint64_t limit_ns,
                              bool is_cancellable);

/**
 * Unlocks the mutex; the first waiter gets it. Never waits.
 *
 * Errors: NOT_LOCKED, NULL.
 *
 * # Safety
 *
 * `mutex` is a live mutex; if it is locked, the caller holds it.
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
 * Frees a condition variable. NULL is allowed.
 *
 * # Safety
 *
 * `condvar` is NULL or a live condition variable; no thread uses it any more.
 */
void tsumugi_condvar_destroy(struct tsumugi_condvar *condvar);

/**
 * Unlocks the mutex, sleeps until notified, and locks the mutex again. A
 * notification between the unlock and the sleep is not lost, and the call does not
 * return without a notification. Blocks.
 *
 * Errors: NOT_LOCKED, NULL.
 *
 * # Safety
 *
 * `condvar` is a live condition variable and `mutex` a live mutex; if the mutex is
 * locked, the caller holds it.
 */
int tsumugi_condvar_wait(struct tsumugi_condvar *condvar, struct tsumugi_mutex *mutex);

/**
 * Waits as `tsumugi_condvar_wait` does, within a time limit. In either case the
 * mutex is locked again, however long that takes.
 *
 * Errors: TIMED_OUT and CANCELLED (no notification was consumed), NOT_LOCKED,
 * NULL.
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
 * Wakes one waiter, if there is one. Never waits.
 *
 * Errors: NULL.
 *
 * # Safety
 *
 * `condvar` is a live condition variable.
 */
int tsumugi_condvar_notify_one(struct tsumugi_condvar *condvar);

/**
 * Wakes all waiters. Never waits.
 *
 * Errors: NULL.
 *
 * # Safety
 *
 * `condvar` is a live condition variable.
 */
int tsumugi_condvar_notify_all(struct tsumugi_condvar *condvar);

/**
 * Makes a reader-writer lock that is free.
 *
 * Errors: NULL.
 *
 * # Safety
 *
 * `out` is valid for a write.
 */
int tsumugi_rwlock_create(struct tsumugi_rwlock **out);

/**
 * Frees a reader-writer lock. NULL is allowed.
 *
 * # Safety
 *
 * `rwlock` is NULL or a live reader-writer lock; no thread uses it any more.
 */
void tsumugi_rwlock_destroy(struct tsumugi_rwlock *rwlock);

/**
 * Locks for reading. Blocks.
 *
 * Errors: NULL.
 *
 * # Safety
 *
 * `rwlock` is a live reader-writer lock.
 */
int tsumugi_rwlock_read(const struct tsumugi_rwlock *rwlock);

/**
 * Locks for reading, within a time limit. Blocks.
 *
 * Errors: TIMED_OUT, CANCELLED, NULL.
 *
 * # Safety
 *
 * `rwlock` is a live reader-writer lock.
 */
int tsumugi_rwlock_read_within(const struct tsumugi_rwlock *rwlock,
                               uint64_t limit_ns,
                               bool is_cancellable);

/**
 * Locks for reading if that needs no waiting. Never waits.
 *
 * Errors: BUSY, NULL.
 *
 * # Safety
 *
 * `rwlock` is a live reader-writer lock.
 */
int tsumugi_rwlock_try_read(const struct tsumugi_rwlock *rwlock);

/**
 * Unlocks a lock that the caller has for reading. Never waits.
 *
 * Errors: NOT_LOCKED (no thread has the lock for reading), NULL.
 *
 * # Safety
 *
 * `rwlock` is a live reader-writer lock; if a thread has it for reading, the caller does.
 */
int tsumugi_rwlock_unlock_read(const struct tsumugi_rwlock *rwlock);

/**
 * Locks for writing. Blocks.
 *
 * Errors: NULL.
 *
 * # Safety
 *
 * `rwlock` is a live reader-writer lock.
 */
int tsumugi_rwlock_write(const struct tsumugi_rwlock *rwlock);

/**
 * Locks for writing, within a time limit. Blocks.
 *
 * Errors: TIMED_OUT, CANCELLED, NULL.
 *
 * # Safety
 *
 * `rwlock` is a live reader-writer lock.
 */
int tsumugi_rwlock_write_within(const struct tsumugi_rwlock *rwlock,
                                uint64_t limit_ns,
                                bool is_cancellable);

/**
 * Locks for writing if that needs no waiting. Never waits.
 *
 * Errors: BUSY, NULL.
 *
 * # Safety
 *
 * `rwlock` is a live reader-writer lock.
 */
int tsumugi_rwlock_try_write(const struct tsumugi_rwlock *rwlock);

/**
 * Unlocks a lock that the caller has for writing. Never waits.
 *
 * Errors: NOT_LOCKED (no thread has the lock for writing), NULL.
 *
 * # Safety
 *
 * `rwlock` is a live reader-writer lock; if a thread has it for writing, the caller does.
 */
int tsumugi_rwlock_unlock_write(const struct tsumugi_rwlock *rwlock);

/**
 * Makes a semaphore with `permits` free permits.
 *
 * Errors: NULL.
 *
 * # Safety
 *
 * `out` is valid for a write.
 */
int tsumugi_semaphore_create(size_t permits, struct tsumugi_semaphore **out);

/**
 * Frees a semaphore. NULL is allowed.
 *
 * # Safety
 *
 * `semaphore` is NULL or a live semaphore; no thread uses it any more.
 */
void tsumugi_semaphore_destroy(struct tsumugi_semaphore *semaphore);

/**
 * Takes `count` permits; the caller sleeps until it is its turn. Blocks.
 *
 * Errors: NULL.
 *
 * # Safety
 *
 * `semaphore` is a live semaphore.
 */
int tsumugi_semaphore_acquire(const struct tsumugi_semaphore *semaphore, size_t count);

/**
 * Takes `count` permits within a time limit. Blocks.
 *
 * Errors: TIMED_OUT, CANCELLED (no permit was taken), NULL.
 *
 * # Safety
 *
 * `semaphore` is a live semaphore.
 */
int tsumugi_semaphore_acquire_within(const struct tsumugi_semaphore *semaphore,
                                     size_t count,
                                     uint64_t limit_ns,
                                     bool is_cancellable);

/**
 * Takes `count` permits if that needs no waiting. Never waits.
 *
 * Errors: BUSY, NULL.
 *
 * # Safety
 *
 * `semaphore` is a live semaphore.
 */
int tsumugi_semaphore_try_acquire(const struct tsumugi_semaphore *semaphore,
                                  size_t count);

/**
 * Gives `count` permits back, or adds new ones. Never waits.
 *
 * Errors: VALUE (more than `SIZE_MAX` permits would be free; their number stays as it
 * is), NULL.
 *
 * # Safety
 *
 * `semaphore` is a live semaphore.
 */
int tsumugi_semaphore_release(const struct tsumugi_semaphore *semaphore, size_t count);

/**
 * Makes a latch for `count` events.
 *
 * Errors: NULL.
 *
 * # Safety
 *
 * `out` is valid for a write.
 */
int tsumugi_latch_create(size_t count, struct tsumugi_latch **out);

/**
 * Frees a latch. NULL is allowed.
 *
 * # Safety
 *
 * `latch` is NULL or a live latch; no thread uses it any more.
 */
void tsumugi_latch_destroy(struct tsumugi_latch *latch);

/**
 * Counts `by` events; at 0 all waiters continue. Never waits.
 *
 * Errors: VALUE (`by` is more than the count, which stays as it is), NULL.
 *
 * # Safety
 *
 * `latch` is a live latch.
 */
int tsumugi_latch_count_down(const struct tsumugi_latch *latch, size_t by);

/**
 * Waits until the count is 0, within a time limit. Blocks.
 *
 * Errors: TIMED_OUT, CANCELLED, NULL.
 *
 * # Safety
 *
 * `latch` is a live latch.
 */
int tsumugi_latch_wait_within(const struct tsumugi_latch *latch,
                              uint64_t limit_ns,
                              bool is_cancellable);

/**
 * Waits until the count is 0. Blocks.
 *
 * Errors: NULL.
 *
 * # Safety
 *
 * `latch` is a live latch.
 */
int tsumugi_latch_wait(const struct tsumugi_latch *latch);

/**
 * Makes a meeting point for `members`; 0 counts as 1.
 *
 * Errors: NULL.
 *
 * # Safety
 *
 * `out` is valid for a write.
 */
int tsumugi_meeting_create(size_t members, struct tsumugi_meeting **out);

/**
 * Frees a meeting point. NULL is allowed.
 *
 * # Safety
 *
 * `meeting` is NULL or a live meeting point; no thread uses it any more.
 */
void tsumugi_meeting_destroy(struct tsumugi_meeting *meeting);

/**
 * Waits until all members have arrived. Writes to `is_last`, unless it is NULL, whether
 * the caller arrived last, which one member did. Blocks.
 *
 * Errors: NULL.
 *
 * # Safety
 *
 * `meeting` is a live meeting point; `is_last` is NULL or valid for a write.
 */
int tsumugi_meeting_wait(const struct tsumugi_meeting *meeting, bool *is_last);

/**
 * Waits as `tsumugi_meeting_wait`, within a time limit.
 *
 * Errors: TIMED_OUT, CANCELLED (the caller has not arrived), NULL.
 *
 * # Safety
 *
 * As for `tsumugi_meeting_wait`.
 */
int tsumugi_meeting_wait_within(const struct tsumugi_meeting *meeting,
                                uint64_t limit_ns,
                                bool is_cancellable,
                                bool *is_last);

/**
 * Calls `init(arg)` if no thread has by this `once`, and returns when such a call is
 * over. Blocks.
 *
 * Errors: NULL.
 *
 * # Safety
 *
 * `once` is zero at first, and used by this function only; `init(arg)` may be called.
 */
int tsumugi_once_call(struct tsumugi_once *once, void (*init)(void*), void *arg);

/**
 * Fills a word: the threads that wait for that continue. Never waits.
 *
 * Errors: NULL.
 *
 * # Safety
 *
 * `word` is not NULL.
 */
int tsumugi_word_fill(uint64_t *word);

/**
 * Empties a word: the threads that wait for that continue.
 *
 * Errors: NULL.
 *
 * # Safety
 *
 * `word` is not NULL.
 */
int tsumugi_word_empty(uint64_t *word);

/**
 * Whether a word is full.
 */
bool tsumugi_word_is_full(const uint64_t *word);

/**
 * Writes a word and fills it, whatever it was.
 *
 * Errors: NULL.
 *
 * # Safety
 *
 * `word` is valid for a write.
 */
int tsumugi_word_write(uint64_t *word, uint64_t value);

/**
 * Waits until a word is empty, writes it, and fills it. Blocks.
 *
 * Errors: NULL.
 *
 * # Safety
 *
 * `word` is valid for a write.
 */
int tsumugi_word_write_empty(uint64_t *word, uint64_t value);

/**
 * Does what `tsumugi_word_write_empty` does, within a time limit (`TSUMUGI_FOREVER`: none);
 * if `is_cancellable` is true, a cancellation of the caller also ends the wait. Blocks.
 *
 * Errors: TIMED_OUT and CANCELLED (the word is as it was), NULL.
 *
 * # Safety
 *
 * As for `tsumugi_word_write_empty`.
 */
int tsumugi_word_write_empty_within(uint64_t *word,
                                    uint64_t value,
                                    uint64_t limit_ns,
                                    bool is_cancellable);

/**
 * Waits until a word is full, writes it, and leaves it full. Blocks.
 *
 * Errors: NULL.
 *
 * # Safety
 *
 * `word` is valid for a write.
 */
int tsumugi_word_write_full(uint64_t *word, uint64_t value);

/**
 * Does what `tsumugi_word_write_full` does, within a time limit. Blocks.
 *
 * Errors: TIMED_OUT and CANCELLED (the word is as it was), NULL.
 *
 * # Safety
 *
 * As for `tsumugi_word_write_full`.
 */
int tsumugi_word_write_full_within(uint64_t *word,
                                   uint64_t value,
                                   uint64_t limit_ns,
                                   bool is_cancellable);

/**
 * Waits until a word is full, reads it, and leaves it full. Blocks.
 *
 * Errors: NULL.
 *
 * # Safety
 *
 * `word` is valid for a read, `value` for a write.
 */
int tsumugi_word_read(const uint64_t *word, uint64_t *value);

/**
 * Does what `tsumugi_word_read` does, within a time limit. Blocks.
 *
 * Errors: TIMED_OUT and CANCELLED (the word is as it was), NULL.
 *
 * # Safety
 *
 * As for `tsumugi_word_read`.
 */
int tsumugi_word_read_within(const uint64_t *word,
                             uint64_t *value,
                             uint64_t limit_ns,
                             bool is_cancellable);

/**
 * Waits until a word is full, reads it, and empties it. Blocks.
 *
 * Errors: NULL.
 *
 * # Safety
 *
 * `word` is valid for a read, `value` for a write.
 */
int tsumugi_word_take(uint64_t *word, uint64_t *value);

/**
 * Does what `tsumugi_word_take` does, within a time limit. Blocks.
 *
 * Errors: TIMED_OUT and CANCELLED (the word is as it was), NULL.
 *
 * # Safety
 *
 * As for `tsumugi_word_take`.
 */
int tsumugi_word_take_within(uint64_t *word,
                             uint64_t *value,
                             uint64_t limit_ns,
                             bool is_cancellable);

/**
 * Makes a key. When a ULT ends that has a value other than NULL under the key,
 * `destructor` is called with that value on that ULT, unless `destructor` is NULL.
 *
 * Errors: NULL.
 *
 * # Safety
 *
 * `out` is valid for a write; the destructor may be called with each value that is
 * set under the key.
 */
int tsumugi_key_create(void (*destructor)(void*), struct tsumugi_key **out);

/**
 * Frees a key. Values that ULTs have under it are still destroyed when these ULTs
 * end. NULL is allowed.
 *
 * # Safety
 *
 * `key` is NULL or a live key; no thread uses it any more.
 */
void tsumugi_key_destroy(struct tsumugi_key *key);

/**
 * Sets the caller's value under the key. The value that it replaces is not
 * destroyed.
 *
 * Errors: NULL.
 *
 * # Safety
 *
 * `key` is a live key.
 */
int tsumugi_key_set(const struct tsumugi_key *key, void *value);

/**
 * The caller's value under the key; NULL if the caller has none.
 *
 * # Safety
 *
 * `key` is a live key.
 */
void *tsumugi_key_get(const struct tsumugi_key *key);

/**
 * Registers a scheduler: from now on its tasks may block in all calls of this
 * library. `wait` is copied; the copy, a few words, is never freed. Lock-free.
 *
 * Errors: CROWDED, SIZE, NULL (also for `current`, `park` and `unpark`).
 *
 * # Safety
 *
 * `wait` is valid for a read of as many bytes as its `size` states. Its functions
 * behave as `struct tsumugi_wait` describes until the registration has been
 * destroyed and none of the scheduler's tasks is in a call of this library. `out`
 * is valid for a write.
 */
int tsumugi_wait_register(const struct tsumugi_wait *wait,
                          struct tsumugi_registration **out);

/**
 * Unregisters a scheduler. Tasks of it that sleep are woken as before; a task that
 * blocks later is treated as an OS thread. NULL is allowed.
 *
 * # Safety
 *
 * `registration` is NULL or a live registration.
 */
void tsumugi_wait_unregister(struct tsumugi_registration *registration);

/**
 * Makes this process a rank of the job in which it was started (by `tsumugi run`,
 * `mpiexec`, `srun` ...; without a launcher it is the only rank of a job of its
 * own), with workers in the background, and opens the global memory. Returns when
 * all ranks have called it. At most once in a process. Blocks.
 *
 * If `MPI_Init` or `acp_init` of the same library has made this process a rank, the job is
 * that one, with its workers, and `tsumugi_end` ends this use alone.
 *
 * A child that the process forks has none of the rank's threads and stacks, and shares
 * the memory of the job with its parent. It may only call `exec` or `_exit`: this
 * library's functions must not be called in it, and neither must `exit`. Where a call
 * checks it (this one, `tsumugi_run`, `tsumugi_end`, `tsumugi_expose`, barriers, fences,
 * collectives, and all calls that make an object of all ranks), the child gets JOB.
 *
 * Errors: JOB, MEMORY, NULL; `tsumugi_reason` has more.
 *
 * # Safety
 *
 * `out` is valid for a write.
 */
int tsumugi_start(struct tsumugi_job **out);

/**
 * Ends the rank that `tsumugi_start` began, and frees the job; all objects that
 * were made of the job must have ended before. Returns when all ranks have called
 * it. Blocks. Memory that was registered where it lay becomes the program's
 * private memory again; all other threads of the process are stopped while that
 * happens.
 *
 * If the rank is that of `MPI_Init` or `acp_init`, it goes on.
 *
 * Errors: JOB (also for a job that `tsumugi_run` made, which ends with its `main`, while
 * MPI uses the rank, and if the caller is a ULT of the rank that this call would end: the job
 * then goes on), NULL.
 *
 * # Safety
 *
 * `job` is a live job; no other thread uses it any more.
 */
int tsumugi_end(struct tsumugi_job *job);

/**
 * Makes this process a rank, as `tsumugi_start` does, runs `main(job, arg)` on a
 * ULT, with the calling thread as a worker, and ends the rank. Writes the return
 * value of `main` to `value`, unless `value` is NULL. At most once in a process.
 * Blocks.
 *
 * Errors: JOB (also if `MPI_Init` or `acp_init` has made this process a rank:
 * `tsumugi_start` has its job), MEMORY, NULL.
 *
 * # Safety
 *
 * `main(job, arg)` may run on any thread; `main` uses the job only until it
 * returns; `value` is NULL or valid for a write.
 */
int tsumugi_run(void *(*main)(struct tsumugi_job*, void*), void *arg, void **value);

/**
 * The rank of this process; `UINT32_MAX` if `job` is NULL. Wait-free.
 *
 * # Safety
 *
 * `job` is NULL or a live job.
 */
uint32_t tsumugi_rank(const struct tsumugi_job *job);

/**
 * The number of ranks of the job; 0 if `job` is NULL. Wait-free.
 *
 * # Safety
 *
 * `job` is NULL or a live job.
 */
uint32_t tsumugi_size(const struct tsumugi_job *job);

/**
 * The scheduler of the rank's workers, by which a thread that is no worker spawns
 * ULTs. It belongs to the job: the program must not run, start or destroy it. NULL
 * if `job` is NULL.
 *
 * # Safety
 *
 * `job` is NULL or a live job.
 */
const struct tsumugi_scheduler *tsumugi_workers(const struct tsumugi_job *job);

/**
 * Waits until every rank has called it. A rank may be in one collective at a time.
 * Blocks.
 *
 * Errors: LOST, JOB, NULL.
 *
 * # Safety
 *
 * `job` is a live job.
 */
int tsumugi_barrier(const struct tsumugi_job *job);

/**
 * Collects the `word` of every rank in `all`, in the order of the ranks. All ranks
 * must call it. Blocks.
 *
 * Errors: LOST, JOB, NULL.
 *
 * # Safety
 *
 * `job` is a live job; `all` is valid for a write of as many words as the job has
 * ranks.
 */
int tsumugi_gather(const struct tsumugi_job *job, uint64_t word, uint64_t *all);

/**
 * Allocates `bytes` bytes of zeroes that any rank can reach by their global
 * address; `agent` (`TSUMUGI_AGENT_*`) carries out their atomic operations.
 *
 * Errors: MEMORY, CROWDED, FLAGS, NULL.
 *
 * # Safety
 *
 * `job` is a live job; `out` is valid for a write.
 */
int tsumugi_expose(const struct tsumugi_job *job,
                   size_t bytes,
                   int agent,
                   struct tsumugi_region **out);

/**
 * Gives the `bytes` bytes at `at` a global address. Parts of exposed memory stay
 * as they are. Pages of the heap, of data and of stacks become shared memory in
 * place, which needs a job made by `tsumugi_start`; while that happens, all other
 * threads of the process are stopped, by a real-time signal.
 *
 * Errors: REACH (also of memory of the program that is not mapped readable and
 * writable, and of blocks of `tsumugi_malloc`), MEMORY, CROWDED, NULL.
 *
 * # Safety
 *
 * `job` is a live job. The memory stays readable and writable until
 * `tsumugi_unregister` has returned. `out` is valid for a write.
 */
int tsumugi_register(const struct tsumugi_job *job,
                     void *at,
                     size_t bytes,
                     struct tsumugi_region **out);

/**
 * Takes the address away and frees the region. Exposed memory is freed; registered
 * memory is the program's alone when this returns, because no rank reads or writes
 * it any more. Later accesses by the address return STALE. Blocks: ranks that have
 * used the address are asked to forget it.
 *
 * Errors: NULL.
 *
 * # Safety
 *
 * `job` is a live job, and `region` a live region of it; no thread of this process
 * uses the region any more.
 */
int tsumugi_unregister(const struct tsumugi_job *job, struct tsumugi_region *region);

/**
 * The global address of the first byte of a region; `TSUMUGI_ADDR_NULL` if
 * `region` is NULL. Wait-free.
 *
 * # Safety
 *
 * `region` is NULL or a live region.
 */
tsumugi_addr tsumugi_region_addr(const struct tsumugi_region *region);

/**
 * The local address of a region in this process; NULL if `region` is NULL.
 * Wait-free.
 *
 * # Safety
 *
 * `region` is NULL or a live region.
 */
void *tsumugi_region_memory(const struct tsumugi_region *region);

/**
 * The address of the starter memory of `rank`: memory that each rank has from the
 * start, zero at first.
 *
 * Errors: NOWHERE, NULL.
 *
 * # Safety
 *
 * `job` is a live job; `out` is valid for a write.
 */
int tsumugi_starter(const struct tsumugi_job *job, uint32_t rank, tsumugi_addr *out);

/**
 * The address `bytes` bytes after `addr`, or before it if `bytes` is negative. The
 * access, not this call, checks that the address is in the region. Wait-free.
 *
 * Errors: RANGE (the sum lies outside of the address range of every region), NULL.
 *
 * # Safety
 *
 * `job` is a live job; `out` is valid for a write.
 */
int tsumugi_addr_add(const struct tsumugi_job *job,
                     tsumugi_addr addr,
                     int64_t bytes,
                     tsumugi_addr *out);

/**
 * The rank that owns the memory at an address. Wait-free.
 *
 * Errors: NOWHERE, NULL.
 *
 * # Safety
 *
 * `job` is a live job; `out` is valid for a write.
 */
int tsumugi_addr_rank(const struct tsumugi_job *job, tsumugi_addr addr, uint32_t *out);

/**
 * The global address of memory of this rank.
 *
 * Errors: REACH (the memory has no global address), NULL.
 *
 * # Safety
 *
 * `job` is a live job; `out` is valid for a write.
 */
int tsumugi_addr_of(const struct tsumugi_job *job, const void *at, tsumugi_addr *out);

/**
 * Where `bytes` bytes at a global address lie in this process. The memory must be
 * of this rank or of another rank of this node.
 *
 * Errors: those of `tsumugi_get`; UNSUPPORTED for a rank of another node.
 *
 * # Safety
 *
 * `job` is a live job; `out` is valid for a write.
 */
int tsumugi_addr_local(const struct tsumugi_job *job,
                       tsumugi_addr addr,
                       size_t bytes,
                       void **out);

/**
 * Reads `bytes` bytes at `from`. A read of 1, 2, 4 or 8 bytes at an aligned
 * address is one access, so it cannot tear. `into` may overlap the bytes at `from`, as
 * for `memmove`, unless a device carries out the accesses of that memory
 * (`TSUMUGI_AGENT_DEVICE`). After NOWHERE, STALE and RANGE nothing was written. Blocks;
 * wait-free between ranks of a node once this rank has read the region table of the
 * target rank.
 *
 * Errors: NOWHERE, STALE, RANGE, LOST, NULL.
 *
 * # Safety
 *
 * `job` is a live job; `into` is valid for a write of `bytes` bytes.
 */
int tsumugi_get(const struct tsumugi_job *job,
                void *into,
                tsumugi_addr from,
                size_t bytes);

/**
 * Writes `bytes` bytes at `to`; 1, 2, 4 or 8 aligned bytes as one access, as
 * `tsumugi_get` reads them. When it returns, the bytes are in the target's memory.
 * `from` may overlap them as for `tsumugi_get`. Blocks.
 *
 * Errors: NOWHERE, STALE, RANGE, READ_ONLY, LOST, NULL.
 *
 * # Safety
 *
 * `job` is a live job; `from` is valid for a read of `bytes` bytes.
 */
int tsumugi_put(const struct tsumugi_job *job,
                tsumugi_addr to,
                const void *from,
                size_t bytes);

/**
 * Copies `bytes` bytes from `src` to `dst`; each may be in any rank's memory.
 * Blocks.
 *
 * Errors: those of `tsumugi_put`.
 *
 * # Safety
 *
 * `job` is a live job.
 */
int tsumugi_copy(const struct tsumugi_job *job,
                 tsumugi_addr dst,
                 tsumugi_addr src,
                 size_t bytes);

/**
 * Changes the 4 bytes at `at` with `operand`, by the atomic operation `what`
 * (`TSUMUGI_ATOMIC_*`). Writes the old value to `old`, unless `old` is NULL.
 * Blocks.
 *
 * Errors: NOWHERE, STALE, RANGE, UNALIGNED, READ_ONLY, LOST, FLAGS, NULL.
 *
 * # Safety
 *
 * `job` is a live job; `old` is NULL or valid for a write.
 */
int tsumugi_atomic4(const struct tsumugi_job *job,
                    int what,
                    tsumugi_addr at,
                    uint32_t operand,
                    uint32_t *old);

/**
 * Does the same as `tsumugi_atomic4` on 8 bytes.
 *
 * # Safety
 *
 * `job` is a live job; `old` is NULL or valid for a write.
 */
int tsumugi_atomic8(const struct tsumugi_job *job,
                    int what,
                    tsumugi_addr at,
                    uint64_t operand,
                    uint64_t *old);

/**
 * Stores `desired` in the 4 bytes at `at` if they hold `expected`. Writes the old
 * value to `old`, unless `old` is NULL. Blocks.
 *
 * Errors: those of `tsumugi_atomic4`.
 *
 * # Safety
 *
 * `job` is a live job; `old` is NULL or valid for a write.
 */
int tsumugi_compare_swap4(const struct tsumugi_job *job,
                          tsumugi_addr at,
                          uint32_t expected,
                          uint32_t desired,
                          uint32_t *old);

/**
 * Does the same as `tsumugi_compare_swap4` on 8 bytes.
 *
 * # Safety
 *
 * `job` is a live job; `old` is NULL or valid for a write.
 */
int tsumugi_compare_swap8(const struct tsumugi_job *job,
                          tsumugi_addr at,
                          uint64_t expected,
                          uint64_t desired,
                          uint64_t *old);

/**
 * Begins to copy `bytes` bytes from `src` to `dst`, each in any rank's memory. The
 * copy starts when `after` has ended, at once if `after` is NULL. The caller
 * sleeps only while there is no room for one more operation. The handle is written
 * to `out`; if `out` is NULL, the operation runs without a handle, and
 * `tsumugi_flush` still waits for it.
 *
 * Errors: NULL; `tsumugi_operation_wait` returns the errors of the copy itself.
 *
 * # Safety
 *
 * `job` is a live job; `after` is NULL or a live operation; `out` is NULL or valid
 * for a write.
 */
int tsumugi_begin_copy(const struct tsumugi_job *job,
                       tsumugi_addr dst,
                       tsumugi_addr src,
                       size_t bytes,
                       const struct tsumugi_operation *after,
                       struct tsumugi_operation **out);

/**
 * Begins to write the `bytes` bytes at `from` to `to`. `from` is memory of this
 * rank that has a global address, and the program must not change it before the
 * operation has ended. The rest is as for `tsumugi_begin_copy`.
 *
 * Errors: REACH (`from` has no global address), NULL.
 *
 * # Safety
 *
 * As for `tsumugi_begin_copy`.
 */
int tsumugi_begin_put(const struct tsumugi_job *job,
                      tsumugi_addr to,
                      const void *from,
                      size_t bytes,
                      const struct tsumugi_operation *after,
                      struct tsumugi_operation **out);

/**
 * Begins to read `bytes` bytes at `from` to `into`, which is memory of this rank
 * that has a global address. The rest is as for `tsumugi_begin_copy`.
 *
 * Errors: REACH (`into` has no global address), NULL.
 *
 * # Safety
 *
 * As for `tsumugi_begin_copy`.
 */
int tsumugi_begin_get(const struct tsumugi_job *job,
                      void *into,
                      tsumugi_addr from,
                      size_t bytes,
                      const struct tsumugi_operation *after,
                      struct tsumugi_operation **out);

/**
 * Begins to change the 4 bytes at `at`, as `tsumugi_atomic4` does. The rest is as
 * for `tsumugi_begin_copy`.
 *
 * Errors: FLAGS, NULL.
 *
 * # Safety
 *
 * As for `tsumugi_begin_copy`.
 */
int tsumugi_begin_atomic4(const struct tsumugi_job *job,
                          int what,
                          tsumugi_addr at,
                          uint32_t operand,
                          const struct tsumugi_operation *after,
                          struct tsumugi_operation **out);

/**
 * Does the same as `tsumugi_begin_atomic4` on 8 bytes.
 *
 * Errors: FLAGS, NULL.
 *
 * # Safety
 *
 * As for `tsumugi_begin_copy`.
 */
int tsumugi_begin_atomic8(const struct tsumugi_job *job,
                          int what,
                          tsumugi_addr at,
                          uint64_t operand,
                          const struct tsumugi_operation *after,
                          struct tsumugi_operation **out);

/**
 * Whether an operation has ended, so that a wait for it would not sleep; true if
 * `operation` is NULL. Never waits.
 *
 * # Safety
 *
 * `operation` is NULL or a live operation.
 */
bool tsumugi_operation_test(const struct tsumugi_operation *operation);

/**
 * Waits until an operation has ended, that is, its bytes are in the destination,
 * and ends the handle. For an atomic operation, the old value is written to `old`,
 * unless `old` is NULL. Blocks.
 *
 * Errors: those of `tsumugi_put` and `tsumugi_atomic4`; after an error, a part of
 * the operation may have been done.
 *
 * # Safety
 *
 * `operation` is a live operation; `old` is NULL or valid for a write.
 */
int tsumugi_operation_wait(struct tsumugi_operation *operation, uint64_t *old);

/**
 * Ends the handle; the operation goes on without it. NULL is allowed. Never waits.
 *
 * # Safety
 *
 * `operation` is NULL or a live operation.
 */
void tsumugi_operation_let_go(struct tsumugi_operation *operation);

/**
 * Waits until all operations that this rank has begun so far and that touch memory
 * of `rank` have ended. Blocks.
 *
 * Errors: NOWHERE, NULL.
 *
 * # Safety
 *
 * `job` is a live job.
 */
int tsumugi_flush(const struct tsumugi_job *job, uint32_t rank);

/**
 * Waits until all operations that this rank has begun so far have ended. Blocks.
 *
 * Errors: NULL.
 *
 * # Safety
 *
 * `job` is a live job.
 */
int tsumugi_flush_all(const struct tsumugi_job *job);

/**
 * Writes `bytes` bytes at `to`, then changes the 8-byte word at `word`, of the same
 * or another rank, by `signal` (`TSUMUGI_SIGNAL_*`) with `value`, and wakes the
 * threads that wait for it: a thread that sees the signal sees the bytes. `from` may
 * overlap them as for `tsumugi_get`. Blocks;
 * wait-free between ranks of a node.
 *
 * Errors: VALUE (of `signal`), NULL; NOWHERE, STALE, RANGE, READ_ONLY and LOST of
 * the bytes (then the word is unchanged) and of the word, and UNALIGNED of the word
 * (then the bytes have landed).
 *
 * # Safety
 *
 * `job` is a live job; `from` is valid for a read of `bytes` bytes.
 */
int tsumugi_put_signal(const struct tsumugi_job *job,
                       tsumugi_addr to,
                       const void *from,
                       size_t bytes,
                       tsumugi_addr word,
                       int signal,
                       uint64_t value);

/**
 * Changes the 8-byte word at `word` by `signal` (`TSUMUGI_SIGNAL_*`) with `value`, and
 * wakes the threads that wait for it. Writes the old value to `old`, unless `old` is
 * NULL. Blocks; wait-free between ranks of a node.
 *
 * Errors: NOWHERE, STALE, RANGE, UNALIGNED, READ_ONLY, LOST, VALUE (of `signal`),
 * NULL.
 *
 * # Safety
 *
 * `job` is a live job; `old` is NULL or valid for a write.
 */
int tsumugi_signal(const struct tsumugi_job *job,
                   tsumugi_addr word,
                   int signal,
                   uint64_t value,
                   uint64_t *old);

/**
 * Waits until the 8-byte word at `word`, which is this rank's own memory, satisfies
 * the condition `until` (`TSUMUGI_UNTIL_*`) with `value`, by a signal of any rank.
 * Writes the word that did to `found`, unless `found` is NULL. The caller sleeps
 * meanwhile. Changes by plain puts and atomics are seen, but do not wake a waiter.
 * The memory must stay registered during the call. Blocks.
 *
 * Errors: LOST (a rank has died while the word did not satisfy the condition),
 * ELSEWHERE (the word is another rank's), NOWHERE, STALE, RANGE, UNALIGNED, VALUE
 * (of `until`), NULL.
 *
 * # Safety
 *
 * `job` is a live job; `found` is NULL or valid for a write.
 */
int tsumugi_wait_until(const struct tsumugi_job *job,
                       tsumugi_addr word,
                       int until,
                       uint64_t value,
                       uint64_t *found);

/**
 * Waits as `tsumugi_wait_until` does, for `limit_ns` nanoseconds at most
 * (`TSUMUGI_FOREVER`: no limit).
 *
 * Errors: TIMED_OUT, and those of `tsumugi_wait_until`.
 *
 * # Safety
 *
 * As for `tsumugi_wait_until`.
 */
int tsumugi_wait_until_within(const struct tsumugi_job *job,
                              tsumugi_addr word,
                              int until,
                              uint64_t value,
                              uint64_t limit_ns,
                              uint64_t *found);

/**
 * Allocates `bytes` bytes in this rank's partition, aligned to 16, from which a
 * message is copied once. If the heap is full (`TSUMUGI_HEAP_BYTES`), or if the process is
 * not a rank, the system allocates them. NULL if the system has no memory either.
 * Never waits for another rank.
 */
void *tsumugi_malloc(size_t bytes);

/**
 * Allocates `count` zero values of `bytes` bytes each, as `tsumugi_malloc` does. NULL
 * also if the product is no number of bytes.
 */
void *tsumugi_calloc(size_t count, size_t bytes);

/**
 * Makes the block `bytes` bytes long, at the same or another place, and returns it;
 * its bytes stay as they are, as far as they fit. A NULL `block` is a new block. If
 * there is no memory, returns NULL, and the block stays as it is.
 *
 * # Safety
 *
 * `block` is NULL, or is a block of one of these functions that was not freed; no
 * thread uses it meanwhile.
 */
void *tsumugi_realloc(void *block, size_t bytes);

/**
 * Frees a block of `tsumugi_malloc`, `tsumugi_calloc`, `tsumugi_realloc` or
 * `tsumugi_recv_whole`. NULL is allowed. Never waits.
 *
 * # Safety
 *
 * `block` is NULL, or is a block of one of these functions that was not freed; no
 * thread uses it any more.
 */
void tsumugi_free(void *block);

/**
 * The communicator that exists from the start. Wait-free.
 *
 * Errors: NULL.
 *
 * # Safety
 *
 * `job` is a live job; `out` is valid for a write.
 */
int tsumugi_comm_open(const struct tsumugi_job *job, struct tsumugi_comm **out);

/**
 * Makes a new communicator for a part of the program. All ranks must call it. Blocks.
 *
 * Errors: CROWDED (the job has 65,534 groups and communicators),
 * LOST, JOB, ENDED, NULL.
 *
 * # Safety
 *
 * `comm` is a communicator; `out` is valid for a write.
 */
int tsumugi_comm_duplicate(const struct tsumugi_comm *comm, struct tsumugi_comm **out);

/**
 * Ends the handle of a communicator; requests that were begun through it go on. Never
 * waits.
 *
 * Errors: ENDED, NULL.
 *
 * # Safety
 *
 * `comm` is a communicator; no thread uses it any more.
 */
int tsumugi_comm_close(struct tsumugi_comm *comm);

/**
 * Sends `bytes` bytes to the rank `to`. Returns when the bytes may be changed again:
 * at once for short messages, and for long ones when the other rank has taken them.
 * Blocks.
 *
 * Errors: RANK, LENGTH (no memory has so many bytes), LOST, CROWDED (this rank has 1,048,576
 * messages in progress), FAILED, ENDED, NULL.
 *
 * # Safety
 *
 * `comm` is a communicator; `from` is valid for a read of `bytes` bytes.
 */
int tsumugi_send(const struct tsumugi_comm *comm,
                 uint32_t to,
                 uint32_t tag,
                 const void *from,
                 size_t bytes);

/**
 * Waits for a message from `source` (a rank, or `TSUMUGI_ANY_SOURCE`) with `tag` (a
 * tag of 32 bits, or `TSUMUGI_ANY_TAG`), and copies it to `into`, which has room for
 * `room` bytes. Writes what has come to `received`, unless that is NULL. Blocks.
 *
 * Errors: TRUNCATED (the message is longer than the room, which has its beginning; the
 * rest is lost; `received` is written), RANK, VALUE (of `tag`), LOST (the source of the
 * receive, or the sender of the message, has died), CROWDED, FAILED, ENDED, NULL.
 *
 * # Safety
 *
 * `comm` is a communicator; `into` is valid for a write of `room` bytes; `received` is
 * NULL or valid for a write.
 */
int tsumugi_recv(const struct tsumugi_comm *comm,
                 int64_t source,
                 int64_t tag,
                 void *into,
                 size_t room,
                 struct tsumugi_received *received);

/**
 * Waits for a message of any length, as `tsumugi_recv` does, and writes the address of
 * its bytes to `data`: a block that `tsumugi_free` frees, also if the message has no
 * bytes. Blocks.
 *
 * Errors: MEMORY (the message stays), and those of `tsumugi_recv` but TRUNCATED.
 *
 * # Safety
 *
 * `comm` is a communicator; `data` is valid for a write; `received` is NULL or valid
 * for a write.
 */
int tsumugi_recv_whole(const struct tsumugi_comm *comm,
                       int64_t source,
                       int64_t tag,
                       void **data,
                       struct tsumugi_received *received);

/**
 * Sends and receives at the same time, as `tsumugi_send` and `tsumugi_recv` do, so that
 * ranks that exchange messages cannot deadlock. Blocks.
 *
 * Errors: those of `tsumugi_send` and of `tsumugi_recv`; both have ended then.
 *
 * # Safety
 *
 * As for `tsumugi_send` and `tsumugi_recv`; the two memories do not overlap.
 */
int tsumugi_send_recv(const struct tsumugi_comm *comm,
                      uint32_t to,
                      uint32_t send_tag,
                      const void *from,
                      size_t bytes,
                      int64_t source,
                      int64_t recv_tag,
                      void *into,
                      size_t room,
                      struct tsumugi_received *received);

/**
 * Waits until there is a message that matches, as for `tsumugi_recv`, and writes its
 * source, tag and length to `found`, without receiving it. Another thread may receive
 * it. Blocks.
 *
 * Errors: RANK, VALUE (of `tag`), LOST, ENDED, NULL.
 *
 * # Safety
 *
 * `comm` is a communicator; `found` is NULL or valid for a write.
 */
int tsumugi_probe(const struct tsumugi_comm *comm,
                  int64_t source,
                  int64_t tag,
                  struct tsumugi_received *found);

/**
 * Writes to `is_there` whether there is a message that matches, as for `tsumugi_recv`,
 * and its source, tag and length to `found` if there is one. Never waits.
 *
 * Errors: RANK, VALUE (of `tag`), ENDED, NULL.
 *
 * # Safety
 *
 * `comm` is a communicator; `is_there` is valid for a write; `found` is NULL or valid
 * for a write.
 */
int tsumugi_try_probe(const struct tsumugi_comm *comm,
                      int64_t source,
                      int64_t tag,
                      bool *is_there,
                      struct tsumugi_received *found);

/**
 * Begins to send `bytes` bytes to the rank `to`; the program must not change them
 * before the request has ended. Waits only for room in the rank's tables.
 *
 * Errors: RANK, LOST, CROWDED, ENDED, NULL; the wait returns errors that occur later.
 *
 * # Safety
 *
 * `comm` is a communicator; `from` is valid for a read of `bytes` bytes until the
 * request has ended; `out` is valid for a write.
 */
int tsumugi_isend(const struct tsumugi_comm *comm,
                  uint32_t to,
                  uint32_t tag,
                  const void *from,
                  size_t bytes,
                  struct tsumugi_request **out);

/**
 * Begins to receive a message into `room` bytes at `into`, as `tsumugi_recv` does; the
 * program must not use them before the request has ended. Waits only for room in the
 * rank's tables.
 *
 * Errors: RANK, VALUE (of `tag`), LOST, CROWDED, ENDED, NULL; the wait returns errors
 * that occur later.
 *
 * # Safety
 *
 * `comm` is a communicator; `into` is valid for a write of `room` bytes until the
 * request has ended; `out` is valid for a write.
 */
int tsumugi_irecv(const struct tsumugi_comm *comm,
                  int64_t source,
                  int64_t tag,
                  void *into,
                  size_t room,
                  struct tsumugi_request **out);

/**
 * Waits until the message or the collective has ended, and ends the request. Writes what
 * has come to `received`, unless that is NULL; of a send, the receiver, the tag and the
 * length; of a collective, zeroes. That a send has ended need not mean that the message
 * was received. Blocks.
 *
 * Errors: TRUNCATED, LOST, CANCELLED, FAILED and ENDED of the message, and those of the
 * collective (the request has ended then, too); NULL, and ENDED of a request that a call
 * has ended before.
 *
 * # Safety
 *
 * `request` is a request; no other thread ends it; `received` is NULL or valid for a
 * write.
 */
int tsumugi_request_wait(struct tsumugi_request *request,
                         struct tsumugi_received *received);

/**
 * Writes to `is_done` whether the message or the collective has ended. If it has, ends
 * the request, as `tsumugi_request_wait` does. Never waits.
 *
 * Errors: those of `tsumugi_request_wait`; for an error of the message or the collective
 * `is_done` is true.
 *
 * # Safety
 *
 * As for `tsumugi_request_wait`; `is_done` is valid for a write.
 */
int tsumugi_request_test(struct tsumugi_request *request,
                         bool *is_done,
                         struct tsumugi_received *received);

/**
 * Waits until one of `count` messages and collectives has ended, writes its index to
 * `index`, and ends its request, as `tsumugi_request_wait` does; the entry in `requests`
 * becomes NULL. Entries that are NULL are left out. Blocks; while there are both messages
 * and collectives, the caller looks at them every 100 us.
 *
 * Errors: those of `tsumugi_request_wait`, of the request at `index`; NULL also if all
 * entries are NULL.
 *
 * # Safety
 *
 * `requests` is valid for reads and writes of `count` entries, each of which is NULL or
 * a request; no other thread ends one of them; `index` is valid for a write; `received`
 * is NULL or valid for a write.
 */
int tsumugi_request_wait_any(struct tsumugi_request **requests,
                             size_t count,
                             size_t *index,
                             struct tsumugi_received *received);

/**
 * Waits until all of `count` messages and collectives have ended, and ends their requests;
 * the entries in `requests` become NULL. Entries that are NULL are left out. Writes what
 * has come to `received`, unless that is NULL, and the code of each request to `codes`,
 * unless that is NULL: entry by entry. The code of an entry that is NULL is `TSUMUGI_OK`.
 * Blocks.
 *
 * Errors: the code of the first request that has failed; NULL and ENDED, as for
 * `tsumugi_request_wait`: then no request was ended.
 *
 * # Safety
 *
 * `requests` is valid for reads and writes of `count` entries, each of which is NULL or
 * a request; no other thread ends one of them; `received` and `codes` are NULL or valid
 * for writes of `count` entries.
 */
int tsumugi_request_wait_all(struct tsumugi_request **requests,
                             size_t count,
                             struct tsumugi_received *received,
                             int *codes);

/**
 * Asks that the receive take no message any more. The wait then returns CANCELLED, or
 * a message that was arriving already; no message is lost. A send and a collective are not
 * cancelled. Never waits.
 *
 * Errors: VALUE (the request is not a receive), ENDED, NULL.
 *
 * # Safety
 *
 * `request` is a request; no other thread ends it.
 */
int tsumugi_request_cancel(const struct tsumugi_request *request);

/**
 * The group of all ranks, in their order. Wait-free.
 *
 * Errors: NULL.
 *
 * # Safety
 *
 * `job` is a live job; `out` is valid for a write.
 */
int tsumugi_group_world(const struct tsumugi_job *job, struct tsumugi_group **out);

/**
 * Makes groups of the members that give the same `color`, a number of 32 bits, in the
 * order of their keys, and of their places in `group` for equal keys. Writes NULL for a
 * member that gives `TSUMUGI_NO_COLOR`. All members must call it. Blocks.
 *
 * Errors: VALUE (of `color`: the other members then wait for this one), CROWDED (the job
 * has 65,534 groups and communicators), LOST, ENDED, NULL.
 *
 * # Safety
 *
 * `group` is a group; `out` is valid for a write.
 */
int tsumugi_group_split(const struct tsumugi_group *group,
                        int64_t color,
                        int64_t key,
                        struct tsumugi_group **out);

/**
 * Makes a group of the same members; its collectives do not mix with those of `group`.
 * All members must call it. Blocks.
 *
 * Errors: those of `tsumugi_group_split` but VALUE.
 *
 * # Safety
 *
 * As for `tsumugi_group_split`.
 */
int tsumugi_group_duplicate(const struct tsumugi_group *group,
                            struct tsumugi_group **out);

/**
 * Ends the handle of a group; collectives that were begun on it go on. Never waits.
 *
 * Errors: ENDED, NULL.
 *
 * # Safety
 *
 * `group` is a group; no thread uses it any more.
 */
int tsumugi_group_close(struct tsumugi_group *group);

/**
 * The place of this rank in the group; `UINT32_MAX` if `group` is NULL or has ended.
 * Wait-free.
 *
 * # Safety
 *
 * `group` is NULL or a group.
 */
uint32_t tsumugi_group_rank(const struct tsumugi_group *group);

/**
 * The number of members; 0 if `group` is NULL or has ended. Wait-free.
 *
 * # Safety
 *
 * `group` is NULL or a group.
 */
uint32_t tsumugi_group_size(const struct tsumugi_group *group);

/**
 * Writes the rank of a member in the job to `rank`. Wait-free.
 *
 * Errors: RANK (the group has no such member), ENDED, NULL.
 *
 * # Safety
 *
 * `group` is a group; `rank` is valid for a write.
 */
int tsumugi_group_translate(const struct tsumugi_group *group,
                            uint32_t member,
                            uint32_t *rank);

/**
 * Waits until every member has called it. If `request` is not NULL, does not wait, but
 * writes a request, which ends when every member has called it. All members must call it.
 * Blocks, unless it begins.
 *
 * Errors: LOST, ENDED, NULL.
 *
 * # Safety
 *
 * `group` is a group; `request` is NULL or valid for a write.
 */
int tsumugi_group_barrier(const struct tsumugi_group *group,
                          struct tsumugi_request **request);

/**
 * Brings the `bytes` bytes at `data` of the member `root` to all members. If `request` is
 * NULL, waits for the end; else begins the collective and writes a request, which
 * `tsumugi_request_wait` and its like end: until then the program leaves the memory
 * alone. All members must call it. Blocks, unless it begins.
 *
 * Errors: RANK (of `root`), LENGTH (another member gives other `bytes`: found where the
 * bytes meet, and all members have taken part), LOST, ENDED, NULL. A member whose own
 * arguments are wrong takes no part. `bytes` on two sides of a length at which the
 * algorithm changes, such as 256 on a node, can make members wait for ever: so in all
 * collectives with lengths.
 *
 * # Safety
 *
 * `group` is a group; `data` is valid for reads and writes of `bytes` bytes until the
 * collective has ended; `request` is NULL or valid for a write.
 */
int tsumugi_group_broadcast(const struct tsumugi_group *group,
                            void *data,
                            size_t bytes,
                            uint32_t root,
                            struct tsumugi_request **request);

/**
 * Brings `bytes` bytes of each member to `into` at the member `root`, in the order of the
 * members; other members do not use `into`. `request` and the rest are as for
 * `tsumugi_group_broadcast`.
 *
 * # Safety
 *
 * `group` is a group; until the collective has ended `from` is valid for a read of `bytes`
 * bytes, and at the root `into` for a write of as many for each member; they do not
 * overlap; `request` is NULL or valid for a write.
 */
int tsumugi_group_gather(const struct tsumugi_group *group,
                         const void *from,
                         size_t bytes,
                         void *into,
                         uint32_t root,
                         struct tsumugi_request **request);

/**
 * Does the same as `tsumugi_group_gather` with lengths that differ: at the root, `lens`
 * has the bytes of each member, and `places` their offsets in `into`, or is NULL if they
 * follow each other. Other members do not use these.
 *
 * # Safety
 *
 * As for `tsumugi_group_gather`; at the root `lens` is valid for a read of as many numbers
 * as the group has members, and `places` is NULL or valid for that, too; the places of
 * `into` do not overlap.
 */
int tsumugi_group_gather_v(const struct tsumugi_group *group,
                           const void *from,
                           size_t bytes,
                           void *into,
                           const size_t *lens,
                           const size_t *places,
                           uint32_t root,
                           struct tsumugi_request **request);

/**
 * Brings `bytes` bytes of `from` at the member `root` to `into` of each member: the block
 * of its place; other members do not use `from`. `request` and the rest are as for
 * `tsumugi_group_broadcast`.
 *
 * # Safety
 *
 * `group` is a group; until the collective has ended `into` is valid for a write of
 * `bytes` bytes, and at the root `from` for a read of as many for each member; they do not
 * overlap; `request` is NULL or valid for a write.
 */
int tsumugi_group_scatter(const struct tsumugi_group *group,
                          const void *from,
                          void *into,
                          size_t bytes,
                          uint32_t root,
                          struct tsumugi_request **request);

/**
 * Does the same as `tsumugi_group_scatter` with lengths that differ: at the root, `lens`
 * has the bytes of each member, and `places` their offsets in `from`, or is NULL if they
 * follow each other. Other members do not use these.
 *
 * # Safety
 *
 * As for `tsumugi_group_scatter`; at the root `lens` is valid for a read of as many
 * numbers as the group has members, and `places` is NULL or valid for that, too.
 */
int tsumugi_group_scatter_v(const struct tsumugi_group *group,
                            const void *from,
                            const size_t *lens,
                            const size_t *places,
                            void *into,
                            size_t bytes,
                            uint32_t root,
                            struct tsumugi_request **request);

/**
 * Brings `bytes` bytes of each member to `into` at all members, in the order of the
 * members. `request` and the rest are as for `tsumugi_group_broadcast`.
 *
 * # Safety
 *
 * `group` is a group; until the collective has ended `from` is valid for a read of `bytes`
 * bytes, and `into` for a write of as many for each member; they do not overlap; `request`
 * is NULL or valid for a write.
 */
int tsumugi_group_allgather(const struct tsumugi_group *group,
                            const void *from,
                            size_t bytes,
                            void *into,
                            struct tsumugi_request **request);

/**
 * Does the same as `tsumugi_group_allgather` with lengths that differ: `lens` has the bytes
 * of each member, the same at all members. The blocks follow each other in `into`.
 *
 * # Safety
 *
 * As for `tsumugi_group_allgather`; `lens` is valid for a read of as many numbers as the
 * group has members.
 */
int tsumugi_group_allgather_v(const struct tsumugi_group *group,
                              const void *from,
                              size_t bytes,
                              void *into,
                              const size_t *lens,
                              struct tsumugi_request **request);

/**
 * Brings a block of `bytes` bytes of each member to each: the block of `from` of a
 * member's place goes to that member, and the block of `into` of a member's place comes
 * from it. `request` and the rest are as for `tsumugi_group_broadcast`.
 *
 * # Safety
 *
 * `group` is a group; until the collective has ended `from` is valid for a read, and
 * `into` for a write, of `bytes` bytes for each member; they do not overlap; `request` is
 * NULL or valid for a write.
 */
int tsumugi_group_alltoall(const struct tsumugi_group *group,
                           const void *from,
                           void *into,
                           size_t bytes,
                           struct tsumugi_request **request);

/**
 * Does the same as `tsumugi_group_alltoall` with lengths that differ: `from_lens` has the
 * bytes of the blocks of `from`, and `from_places` their offsets, or is NULL if they follow
 * each other; `into_lens` and `into_places` are those of `into`.
 *
 * # Safety
 *
 * As for `tsumugi_group_alltoall`; the lengths are valid for a read of as many numbers as
 * the group has members, and the places are NULL or valid for that, too; the places of
 * `into` do not overlap.
 */
int tsumugi_group_alltoall_v(const struct tsumugi_group *group,
                             const void *from,
                             const size_t *from_lens,
                             const size_t *from_places,
                             void *into,
                             const size_t *into_lens,
                             const size_t *into_places,
                             struct tsumugi_request **request);

/**
 * Combines `count` elements of each member, one by one, as `by` says; the member `root`
 * gets the result in `into`, which other members do not use. `from` is NULL where the
 * elements lie in `into`. If `request` is NULL, waits for the end; else begins the
 * collective and writes a request, which `tsumugi_request_wait` and its like end: until
 * then the program leaves the memory alone. All members must call it. Blocks, unless it
 * begins.
 *
 * Errors: RANK (of `root`), VALUE, FLAGS and SIZE (of `by`), LENGTH (another member gives
 * another `count`: found where the elements meet, and all members have taken part), LOST,
 * ENDED, NULL. A member whose own arguments are wrong takes no part.
 *
 * # Safety
 *
 * `group` is a group; `from` is valid for a read of the elements, and `into` for a write
 * of them where it is used, until the collective has ended; they are the same or do not
 * overlap; `by` is valid for a read of as many bytes as its `size` states; `request` is
 * NULL or valid for a write.
 */
int tsumugi_group_reduce(const struct tsumugi_group *group,
                         const void *from,
                         void *into,
                         size_t count,
                         const struct tsumugi_reduction *by,
                         uint32_t root,
                         struct tsumugi_request **request);

/**
 * Combines `count` elements of each member, one by one, as `by` says; all members get
 * the result in `into`. `from`, `request` and the rest are as for `tsumugi_group_reduce`.
 *
 * # Safety
 *
 * As for `tsumugi_group_reduce`.
 */
int tsumugi_group_allreduce(const struct tsumugi_group *group,
                            const void *from,
                            void *into,
                            size_t count,
                            const struct tsumugi_reduction *by,
                            struct tsumugi_request **request);

/**
 * Combines `count` elements of the lower members and of this one, one by one, in the
 * order of the members, to `into`. `from`, `request` and the rest are as for
 * `tsumugi_group_reduce`.
 *
 * # Safety
 *
 * As for `tsumugi_group_reduce`.
 */
int tsumugi_group_scan(const struct tsumugi_group *group,
                       const void *from,
                       void *into,
                       size_t count,
                       const struct tsumugi_reduction *by,
                       struct tsumugi_request **request);

/**
 * Combines `count` elements of the lower members, one by one, in the order of the
 * members, to `into`, which stays as it is at the first member. `from`, `request` and the
 * rest are as for `tsumugi_group_reduce`.
 *
 * # Safety
 *
 * As for `tsumugi_group_reduce`.
 */
int tsumugi_group_exscan(const struct tsumugi_group *group,
                         const void *from,
                         void *into,
                         size_t count,
                         const struct tsumugi_reduction *by,
                         struct tsumugi_request **request);

/**
 * Combines the elements of all members, one by one, and writes this member's block of the
 * result to `into`. `from` has a block of `count` elements for each member. `request` and
 * the rest are as for `tsumugi_group_reduce`.
 *
 * # Safety
 *
 * As for `tsumugi_group_reduce`, with as many blocks in `from` as members; `from` and
 * `into` do not overlap.
 */
int tsumugi_group_reduce_scatter(const struct tsumugi_group *group,
                                 const void *from,
                                 void *into,
                                 size_t count,
                                 const struct tsumugi_reduction *by,
                                 struct tsumugi_request **request);

/**
 * Does the same as `tsumugi_group_reduce_scatter` with blocks of different lengths:
 * `counts` has the number of elements of each member's block, the same at all members.
 *
 * # Safety
 *
 * As for `tsumugi_group_reduce_scatter`; `counts` is valid for a read of as many numbers
 * as the group has members.
 */
int tsumugi_group_reduce_scatter_v(const struct tsumugi_group *group,
                                   const void *from,
                                   void *into,
                                   const size_t *counts,
                                   const struct tsumugi_reduction *by,
                                   struct tsumugi_request **request);

/**
 * Combines one number of each member by `what` (`TSUMUGI_SUM` and the others); writes the
 * result to `result`. All members must call it. Blocks.
 *
 * Errors: VALUE (of `what`), LOST, ENDED, NULL.
 *
 * # Safety
 *
 * `group` is a group; `result` is valid for a write.
 */
int tsumugi_group_reduce_u64(const struct tsumugi_group *group,
                             uint32_t what,
                             uint64_t value,
                             uint64_t *result);

/**
 * Does the same as `tsumugi_group_reduce_u64` on numbers with a sign.
 *
 * # Safety
 *
 * As for `tsumugi_group_reduce_u64`.
 */
int tsumugi_group_reduce_i64(const struct tsumugi_group *group,
                             uint32_t what,
                             int64_t value,
                             int64_t *result);

/**
 * Does the same as `tsumugi_group_reduce_u64` on floats.
 *
 * # Safety
 *
 * As for `tsumugi_group_reduce_u64`.
 */
int tsumugi_group_reduce_f64(const struct tsumugi_group *group,
                             uint32_t what,
                             double value,
                             double *result);

/**
 * Runs `handle` for each message to `number` from now on, from any rank. Handlers of
 * messages from one rank start in the order in which the messages were sent, one at a
 * time, on any thread of the rank that polls. A handler must not block or take long,
 * because the next message waits meanwhile: a call in it that would sleep aborts the
 * process. It may spawn ULTs, notify, unlock, send signals to ranks of its node, and
 * store what it was sent. The function and `arg` are used until the job ends; a later
 * call for the same number replaces them.
 *
 * Errors: NULL.
 *
 * # Safety
 *
 * `job` is a live job; `handle(arg, ...)` may run on any thread until the job ends, and
 * writes at most as many bytes to `answer` as there is room for.
 */
int tsumugi_handler(const struct tsumugi_job *job,
                    uint32_t number,
                    tsumugi_handler_function handle,
                    void *arg);

/**
 * Registers a function as `tsumugi_handler` does, which runs on a ULT of its own for
 * each message, so it may block. The ULTs start in any order.
 *
 * Errors: NULL.
 *
 * # Safety
 *
 * As for `tsumugi_handler`.
 */
int tsumugi_service(const struct tsumugi_job *job,
                    uint32_t number,
                    tsumugi_handler_function serve,
                    void *arg);

/**
 * Sends `bytes` bytes to the function `number` of the rank `to`, and waits for its
 * answer. Up to 224 bytes travel in the message; the other rank reads more, up to 256
 * KiB, from a copy in this rank's heap. The answer is copied to `answer`, which has room
 * for `room` bytes, and its length is written to `answer_bytes`, unless that is NULL.
 * Blocks.
 *
 * Errors: TRUNCATED (the answer is longer than the room, which has its beginning),
 * HANDLER, FAILED (the function has returned a number that is too large, or the bytes
 * could not be read), RANK, LENGTH, LOST, MEMORY, CROWDED, ENDED, NULL.
 *
 * # Safety
 *
 * `job` is a live job; `from` is valid for a read of `bytes` bytes; `answer` is valid
 * for a write of `room` bytes; `answer_bytes` is NULL or valid for a write.
 */
int tsumugi_call(const struct tsumugi_job *job,
                 uint32_t to,
                 uint32_t number,
                 const void *from,
                 size_t bytes,
                 void *answer,
                 size_t room,
                 size_t *answer_bytes);

/**
 * Calls as `tsumugi_call` does, and waits for the answer for `limit_ns` nanoseconds at
 * most (`TSUMUGI_FOREVER`: no limit), from the moment when there is room for the call.
 * After TIMED_OUT the function may have run, or may run later.
 *
 * Errors: TIMED_OUT, and those of `tsumugi_call`.
 *
 * # Safety
 *
 * As for `tsumugi_call`.
 */
int tsumugi_call_within(const struct tsumugi_job *job,
                        uint32_t to,
                        uint32_t number,
                        const void *from,
                        size_t bytes,
                        uint64_t limit_ns,
                        void *answer,
                        size_t room,
                        size_t *answer_bytes);

/**
 * Sends `bytes` bytes to the function `number` of the rank `to`, without an answer.
 * Waits only for room, and, with more than 224 bytes, until they have been read. Up to
 * 224 bytes are not answered, so no error of the function is returned for them.
 *
 * Errors: those of `tsumugi_call` but TRUNCATED.
 *
 * # Safety
 *
 * `job` is a live job; `from` is valid for a read of `bytes` bytes.
 */
int tsumugi_cast(const struct tsumugi_job *job,
                 uint32_t to,
                 uint32_t number,
                 const void *from,
                 size_t bytes);

/**
 * Makes a lock of the given kind (`TSUMUGI_RANK_LOCK_*`) with its words in the memory
 * of the rank `home`. All ranks must call it, with the same `home` and `kind`, in the
 * same order. Blocks.
 *
 * Errors: RANK, VALUE (of `kind`), MEMORY, CROWDED, LOST, JOB, NULL.
 *
 * # Safety
 *
 * `job` is a live job; `out` is valid for a write.
 */
int tsumugi_rank_lock_create(const struct tsumugi_job *job,
                             uint32_t home,
                             int kind,
                             struct tsumugi_rank_lock **out);

/**
 * Ends the handle of a lock; holds of this rank are given back. The words are freed at
 * the next barrier, so all ranks must have ended their use of the lock before it.
 *
 * Errors: ENDED, NULL.
 *
 * # Safety
 *
 * `lock` is a rank lock; no thread of this process uses it any more.
 */
int tsumugi_rank_lock_destroy(struct tsumugi_rank_lock *lock);

/**
 * Takes the lock, shared or exclusively (`TSUMUGI_SHARED`, `TSUMUGI_EXCLUSIVE`); the
 * caller sleeps until it is its turn. Blocks.
 *
 * Errors: LOST (a rank has died; the reason names it), VALUE (of `mode`), ENDED, NULL.
 *
 * # Safety
 *
 * `lock` is a rank lock.
 */
int tsumugi_rank_lock_lock(const struct tsumugi_rank_lock *lock, int mode);

/**
 * Takes the lock if that needs no waiting for another holder. Lock-free.
 *
 * Errors: BUSY, and those of `tsumugi_rank_lock_lock`.
 *
 * # Safety
 *
 * `lock` is a rank lock.
 */
int tsumugi_rank_lock_try_lock(const struct tsumugi_rank_lock *lock, int mode);

/**
 * Takes the lock as `tsumugi_rank_lock_lock` does, and waits for it for `limit_ns`
 * nanoseconds at most (`TSUMUGI_FOREVER`: no limit).
 *
 * Errors: TIMED_OUT, and those of `tsumugi_rank_lock_lock`.
 *
 * # Safety
 *
 * `lock` is a rank lock.
 */
int tsumugi_rank_lock_lock_within(const struct tsumugi_rank_lock *lock,
                                  int mode,
                                  uint64_t limit_ns);

/**
 * Gives back one hold of this rank; any thread may do so. Blocking operations under
 * the lock are complete then; operations that were only begun must have ended before.
 * Lock-free.
 *
 * Errors: NOT_LOCKED (this rank does not hold the lock), LOST, ENDED, NULL.
 *
 * # Safety
 *
 * `lock` is a rank lock.
 */
int tsumugi_rank_lock_unlock(const struct tsumugi_rank_lock *lock);

/**
 * Makes a window of `bytes` zero bytes on every rank, aligned to 64, with locks of the
 * given design (`TSUMUGI_WINDOW_*`; that of rank 0 counts). All ranks must call it,
 * with the same `bytes`, in the same order. Blocks.
 *
 * Errors: MEMORY, CROWDED, LENGTH (another rank gives other `bytes`), VALUE (of
 * `design`), LOST, JOB, NULL.
 *
 * # Safety
 *
 * `job` is a live job; `out` is valid for a write.
 */
int tsumugi_window_create(const struct tsumugi_job *job,
                          size_t bytes,
                          int design,
                          struct tsumugi_window **out);

/**
 * Ends the handle of a window; holds and epochs that were made of it must have ended.
 * The memory is freed at the next barrier, so all ranks must have ended their accesses
 * before it.
 *
 * Errors: ENDED, NULL.
 *
 * # Safety
 *
 * `window` is a window; no thread of this process uses it any more.
 */
int tsumugi_window_destroy(struct tsumugi_window *window);

/**
 * Writes the address of this rank's own bytes to `own`. Other ranks may change them at
 * any time; which accesses are ordered is agreed by fences, epochs and holds. Wait-free.
 *
 * Errors: ENDED, NULL.
 *
 * # Safety
 *
 * `window` is a window; `own` is valid for a write.
 */
int tsumugi_window_memory(const struct tsumugi_window *window, void **own);

/**
 * Writes `bytes` bytes at `offset` of `target`'s array. They have landed after the next
 * flush, fence, or end of the epoch or hold; on this node, when this returns. `from` may
 * change when this returns, and may overlap this rank's own array, as for `memmove`.
 * Blocks only for room.
 *
 * Errors: RANK, RANGE, LOST, ENDED, NULL; the error of a put to another node may be
 * returned later, by the next flush.
 *
 * # Safety
 *
 * `window` is a window; `from` is valid for a read of `bytes` bytes.
 */
int tsumugi_window_put(const struct tsumugi_window *window,
                       uint32_t target,
                       size_t offset,
                       const void *from,
                       size_t bytes);

/**
 * Reads `bytes` bytes at `offset` of `target`'s array; they are in `into` when this
 * returns. `into` may overlap this rank's own array, as for `memmove`; after RANK and
 * RANGE nothing was written. Blocks; wait-free between ranks of a node.
 *
 * Errors: RANK, RANGE, LOST, ENDED, NULL.
 *
 * # Safety
 *
 * `window` is a window; `into` is valid for a write of `bytes` bytes.
 */
int tsumugi_window_get(const struct tsumugi_window *window,
                       uint32_t target,
                       size_t offset,
                       void *into,
                       size_t bytes);

/**
 * Changes the 4 bytes at `offset` of `target`'s array with `operand`, by the atomic
 * operation `what` (`TSUMUGI_ATOMIC_*`), and writes the old value to `old`, unless `old`
 * is NULL. The change is complete when this returns. Blocks; wait-free between ranks of
 * a node.
 *
 * Errors: RANK, RANGE, UNALIGNED, VALUE (of `what`), LOST, ENDED, NULL.
 *
 * # Safety
 *
 * `window` is a window; `old` is NULL or valid for a write.
 */
int tsumugi_window_atomic4(const struct tsumugi_window *window,
                           int what,
                           uint32_t target,
                           size_t offset,
                           uint32_t operand,
                           uint32_t *old);

/**
 * Does the same as `tsumugi_window_atomic4` on 8 bytes.
 *
 * # Safety
 *
 * As for `tsumugi_window_atomic4`.
 */
int tsumugi_window_atomic8(const struct tsumugi_window *window,
                           int what,
                           uint32_t target,
                           size_t offset,
                           uint64_t operand,
                           uint64_t *old);

/**
 * Stores `desired` in the 4 bytes at `offset` of `target`'s array if they hold
 * `expected`. Writes the old value to `old`, unless `old` is NULL. Blocks; wait-free
 * between ranks of a node.
 *
 * Errors: RANK, RANGE, UNALIGNED, LOST, ENDED, NULL.
 *
 * # Safety
 *
 * `window` is a window; `old` is NULL or valid for a write.
 */
int tsumugi_window_compare_swap4(const struct tsumugi_window *window,
                                 uint32_t target,
                                 size_t offset,
                                 uint32_t expected,
                                 uint32_t desired,
                                 uint32_t *old);

/**
 * Does the same as `tsumugi_window_compare_swap4` on 8 bytes.
 *
 * # Safety
 *
 * As for `tsumugi_window_compare_swap4`.
 */
int tsumugi_window_compare_swap8(const struct tsumugi_window *window,
                                 uint32_t target,
                                 size_t offset,
                                 uint64_t expected,
                                 uint64_t desired,
                                 uint64_t *old);

/**
 * Waits until all puts of any rank before its fence have landed at all targets. All
 * ranks must call it. Blocks.
 *
 * Errors: those of the first put that failed; LOST, JOB, ENDED, NULL.
 *
 * # Safety
 *
 * `window` is a window.
 */
int tsumugi_window_fence(const struct tsumugi_window *window);

/**
 * Waits until all puts of this rank to `target` have landed. Blocks.
 *
 * Errors: RANK; those of the first put that has failed since the last flush; ENDED,
 * NULL.
 *
 * # Safety
 *
 * `window` is a window.
 */
int tsumugi_window_flush(const struct tsumugi_window *window, uint32_t target);

/**
 * Waits until all puts of this rank to all targets have landed. Blocks.
 *
 * Errors: those of the first put that has failed since the last flush; ENDED, NULL.
 *
 * # Safety
 *
 * `window` is a window.
 */
int tsumugi_window_flush_all(const struct tsumugi_window *window);

/**
 * Locks `target`, shared with other holders or exclusively (`TSUMUGI_SHARED`,
 * `TSUMUGI_EXCLUSIVE`). Blocks.
 *
 * Errors: RANK, VALUE (of `mode`), LOST, ENDED, NULL.
 *
 * # Safety
 *
 * `window` is a window; `out` is valid for a write.
 */
int tsumugi_window_lock(const struct tsumugi_window *window,
                        uint32_t target,
                        int mode,
                        struct tsumugi_hold **out);

/**
 * Locks all targets, shared with other holders. Blocks.
 *
 * Errors: LOST, ENDED, NULL.
 *
 * # Safety
 *
 * `window` is a window; `out` is valid for a write.
 */
int tsumugi_window_lock_all(const struct tsumugi_window *window,
                            struct tsumugi_hold **out);

/**
 * A hold of all targets without a lock, for a program that has no conflicting accesses:
 * it takes no operation, and its release flushes puts. Wait-free.
 *
 * Errors: ENDED, NULL.
 *
 * # Safety
 *
 * `window` is a window; `out` is valid for a write.
 */
int tsumugi_window_unchecked(const struct tsumugi_window *window,
                             struct tsumugi_hold **out);

/**
 * Locks one more target, by a caller that has `hold` already. Ranks that take several
 * targets must take them in the same order, or they deadlock. Blocks.
 *
 * Errors: HELD (the hold has the target already, or excludes the new one), and those of
 * `tsumugi_window_lock`.
 *
 * # Safety
 *
 * `hold` is a hold; `out` is valid for a write.
 */
int tsumugi_hold_lock(const struct tsumugi_hold *hold,
                      uint32_t target,
                      int mode,
                      struct tsumugi_hold **out);

/**
 * Flushes the puts to the targets of the hold, and gives the lock back, also if a put
 * has failed. Blocks for the flush.
 *
 * Errors: those of the first put that failed, or of giving back; ENDED, NULL.
 *
 * # Safety
 *
 * `hold` is a hold; no other thread uses it.
 */
int tsumugi_hold_release(struct tsumugi_hold *hold);

/**
 * Opens this rank's memory to the `count` ranks in `origins`, each of which must call
 * `tsumugi_window_start`. Does not wait for them.
 *
 * Errors: RANK, LOST, ENDED, NULL.
 *
 * # Safety
 *
 * `window` is a window; `origins` is valid for a read of `count` ranks; `out` is valid
 * for a write.
 */
int tsumugi_window_post(const struct tsumugi_window *window,
                        const uint32_t *origins,
                        size_t count,
                        struct tsumugi_exposure **out);

/**
 * Waits until all origins have completed: their puts have landed. Ends the exposure.
 * Blocks.
 *
 * Errors: LOST, ENDED, NULL.
 *
 * # Safety
 *
 * `exposure` is an exposure; no other thread uses it.
 */
int tsumugi_exposure_wait(struct tsumugi_exposure *exposure);

/**
 * Writes to `is_over` whether all origins have completed. Does not end the exposure.
 * Wait-free.
 *
 * Errors: LOST, ENDED, NULL.
 *
 * # Safety
 *
 * `exposure` is an exposure; `is_over` is valid for a write.
 */
int tsumugi_exposure_test(const struct tsumugi_exposure *exposure, bool *is_over);

/**
 * Waits until each of the `count` ranks in `targets` has opened its memory to this rank
 * by `tsumugi_window_post`. Blocks.
 *
 * Errors: RANK, LOST, ENDED, NULL.
 *
 * # Safety
 *
 * `window` is a window; `targets` is valid for a read of `count` ranks; `out` is valid
 * for a write.
 */
int tsumugi_window_start(const struct tsumugi_window *window,
                         const uint32_t *targets,
                         size_t count,
                         struct tsumugi_epoch **out);

/**
 * Waits until all puts to the targets have landed, tells the targets, also if a put has
 * failed, and ends the epoch. Blocks.
 *
 * Errors: those of the first put that failed; LOST, ENDED, NULL.
 *
 * # Safety
 *
 * `epoch` is an epoch; no other thread uses it.
 */
int tsumugi_epoch_complete(struct tsumugi_epoch *epoch);

/**
 * Makes a heap of `bytes` bytes on every rank. All ranks must call it, with the same
 * `bytes`. The heap has blocks of up to 4 KiB; from 2 MiB on also of up to 256 KiB, from
 * 192 MiB on of up to 16 MiB, and from 16 GiB on of up to 1 GiB. The 1, 2, 3 or 4 kinds
 * have an equal share of the memory each, of which a block longer than that of the kind
 * before takes from its own. For longer pieces of memory there is `tsumugi_expose`.
 * Blocks.
 *
 * Errors: MEMORY, CROWDED, LOST, JOB, NULL.
 *
 * # Safety
 *
 * `job` is a live job; `out` is valid for a write.
 */
int tsumugi_heap_create(const struct tsumugi_job *job,
                        uint64_t bytes,
                        struct tsumugi_heap **out);

/**
 * Ends the handle of a heap, and with it this rank's part: other ranks that use its
 * blocks get STALE. Blocks: ranks that have used the part are asked to forget it.
 *
 * Errors: ENDED, NULL.
 *
 * # Safety
 *
 * `heap` is a heap; no thread of this process uses it any more.
 */
int tsumugi_heap_destroy(struct tsumugi_heap *heap);

/**
 * Allocates `bytes` bytes of the memory of `rank`, and writes their address to `out`:
 * a word that may be stored and sent. The program of `rank` takes no part. The bytes
 * have any values. Blocks; lock-free between ranks of a node.
 *
 * Errors: MEMORY (no free run of the rank's part is long enough), LENGTH (the heap has
 * no blocks of this size; the reason has the largest), RANK, STALE, LOST, ENDED, NULL.
 *
 * # Safety
 *
 * `heap` is a heap; `out` is valid for a write.
 */
int tsumugi_heap_malloc(const struct tsumugi_heap *heap,
                        uint32_t rank,
                        uint64_t bytes,
                        tsumugi_addr *out);

/**
 * Allocates `count` values of `bytes` bytes each, as `tsumugi_heap_malloc` does, and
 * writes zeroes to them.
 *
 * Errors: those of `tsumugi_heap_malloc`; LENGTH also if the product is no number of
 * bytes.
 *
 * # Safety
 *
 * As for `tsumugi_heap_malloc`.
 */
int tsumugi_heap_calloc(const struct tsumugi_heap *heap,
                        uint32_t rank,
                        uint64_t count,
                        uint64_t bytes,
                        tsumugi_addr *out);

/**
 * Frees a block that any rank has allocated, at any rank. `TSUMUGI_ADDR_NULL` is
 * allowed. Blocks; lock-free between ranks of a node.
 *
 * Errors: VALUE (no block begins at this address), NOWHERE, STALE, RANGE, LOST, ENDED,
 * NULL.
 *
 * # Safety
 *
 * `heap` is a heap; no rank uses the block any more.
 */
int tsumugi_heap_free(const struct tsumugi_heap *heap, tsumugi_addr block);

/**
 * Makes an empty deque on every rank, with room for at least `capacity` items of
 * `item_bytes` bytes. All ranks must call it, with the same numbers, in the same order.
 * Blocks.
 *
 * Errors: VALUE (`capacity` is 0 or above 2^23), MEMORY, CROWDED, LENGTH (another rank
 * gives other numbers), LOST, JOB, NULL.
 *
 * # Safety
 *
 * `job` is a live job; `out` is valid for a write.
 */
int tsumugi_deque_create(const struct tsumugi_job *job,
                         size_t capacity,
                         size_t item_bytes,
                         struct tsumugi_deque **out);

/**
 * Ends the handle of the deques. The memory is freed at the next barrier, so all ranks
 * must have ended their thefts before it.
 *
 * Errors: ENDED, NULL.
 *
 * # Safety
 *
 * `deque` is a deque; no thread of this process uses it any more.
 */
int tsumugi_deque_destroy(struct tsumugi_deque *deque);

/**
 * Adds a copy of an item to this rank's deque, and writes true to `is_added`; false: there
 * was no room. Lock-free.
 *
 * Errors: ENDED, NULL.
 *
 * # Safety
 *
 * `deque` is a deque; no other thread of this rank pushes or pops at the same time; `item`
 * is valid for a read of the bytes of an item, `is_added` for a write.
 */
int tsumugi_deque_push(const struct tsumugi_deque *deque,
                       const void *item,
                       bool *is_added);

/**
 * Takes the newest item of this rank's deque to `into`, and writes true to `is_taken`;
 * false: there was no item. Lock-free.
 *
 * Errors: ENDED, NULL.
 *
 * # Safety
 *
 * `deque` is a deque; no other thread of this rank pushes or pops at the same time; `into`
 * is valid for a write of the bytes of an item, `is_taken` for a write.
 */
int tsumugi_deque_pop(const struct tsumugi_deque *deque,
                      void *into,
                      bool *is_taken);

/**
 * Takes the oldest item of the deque of a rank, also of this one, to `into`, and writes
 * true to `is_taken`; false: there was no item, or other thieves were faster several
 * times; `into` then has arbitrary bytes. Blocks if the rank is on another node; otherwise
 * lock-free.
 *
 * Errors: RANK, LOST, ENDED, NULL.
 *
 * # Safety
 *
 * `deque` is a deque; `into` is valid for a write of the bytes of an item, `is_taken` for a
 * write.
 */
int tsumugi_deque_steal(const struct tsumugi_deque *deque,
                        uint32_t rank,
                        void *into,
                        bool *is_taken);

/**
 * Writes the number of items of this rank's deque to `count`; when it is there, thieves may
 * have taken some. Wait-free.
 *
 * Errors: ENDED, NULL.
 *
 * # Safety
 *
 * `deque` is a deque; `count` is valid for a write.
 */
int tsumugi_deque_count(const struct tsumugi_deque *deque,
                        size_t *count);

/**
 * Makes an array of zeroes. All ranks must call it, with the same options, in the same
 * order. Blocks.
 *
 * Errors: VALUE (no elements, elements without bytes, too many pages, `first` or
 * `directory`), LENGTH (the bytes are more than an address space, or another rank gives
 * other options), MEMORY, CROWDED, LOST, JOB, SIZE, NULL.
 *
 * # Safety
 *
 * `job` is a live job; `options` is valid for a read of as many bytes as its `size`
 * states; `out` is valid for a write.
 */
int tsumugi_array_create(const struct tsumugi_job *job,
                         const struct tsumugi_array_options *options,
                         struct tsumugi_array **out);

/**
 * Ends the handle of an array; checkouts keep what they have. The memory is freed at the
 * next barrier, so all ranks must have ended their accesses before it.
 *
 * Errors: ENDED, NULL.
 *
 * # Safety
 *
 * `array` is an array; no thread of this process uses it any more.
 */
int tsumugi_array_destroy(struct tsumugi_array *array);

/**
 * Reads `count` elements from `index` on. Lock-free; wait-free between ranks of a node
 * while their pages stay where they are.
 *
 * Errors: RANGE, LOST, ENDED, NULL.
 *
 * # Safety
 *
 * `array` is an array; `into` is valid for a write of `count` elements, and is no memory
 * of the array's pages.
 */
int tsumugi_array_get(const struct tsumugi_array *array,
                      size_t index,
                      void *into,
                      size_t count);

/**
 * Writes `count` elements from `index` on. Blocks.
 *
 * Errors: RANGE, LOST, ENDED, NULL.
 *
 * # Safety
 *
 * `array` is an array; `from` is valid for a read of `count` elements.
 */
int tsumugi_array_put(const struct tsumugi_array *array,
                      size_t index,
                      const void *from,
                      size_t count);

/**
 * Reads `count` elements, those of `indices`, to `into`, one after the other. The indices
 * may be in any order and may repeat. Elements on other nodes are read by several ULTs at
 * once. Blocks; wait-free between ranks of a node while the pages stay where they are.
 *
 * Errors: RANGE, LENGTH (no memory has so many bytes), LOST (some elements may have been
 * read then), ENDED, NULL.
 *
 * # Safety
 *
 * `array` is an array; `indices` is valid for a read of `count` numbers, `into` for a write
 * of `count` elements.
 */
int tsumugi_array_gather(const struct tsumugi_array *array,
                         const size_t *indices,
                         size_t count,
                         void *into);

/**
 * Writes `count` elements, those of `indices`, from `from`, one after the other. If an
 * index repeats, any of its values may be the last. Elements on other nodes are written by
 * several ULTs at once. Blocks.
 *
 * Errors: RANGE, LENGTH (no memory has so many bytes; nothing was written in both cases),
 * LOST (some elements may have been written), ENDED, NULL.
 *
 * # Safety
 *
 * `array` is an array; `indices` is valid for a read of `count` numbers, `from` for a read
 * of `count` elements.
 */
int tsumugi_array_scatter(const struct tsumugi_array *array,
                          const size_t *indices,
                          size_t count,
                          const void *from);

/**
 * Changes an element of 4 bytes with `operand`, by the atomic operation `what`
 * (`TSUMUGI_ATOMIC_*`), at its owner, and writes the old value to `old`, unless that is
 * NULL. Blocks.
 *
 * Errors: RANGE, VALUE (of `what`, or the elements have another size), LOST, ENDED,
 * NULL.
 *
 * # Safety
 *
 * `array` is an array; `old` is NULL or valid for a write.
 */
int tsumugi_array_atomic4(const struct tsumugi_array *array,
                          int what,
                          size_t index,
                          uint32_t operand,
                          uint32_t *old);

/**
 * Does the same as `tsumugi_array_atomic4` on an element of 8 bytes.
 *
 * # Safety
 *
 * As for `tsumugi_array_atomic4`.
 */
int tsumugi_array_atomic8(const struct tsumugi_array *array,
                          int what,
                          size_t index,
                          uint64_t operand,
                          uint64_t *old);

/**
 * Stores `desired` in an element of 4 bytes if it is `expected`, and writes the old value
 * to `old`, unless that is NULL. Blocks.
 *
 * Errors: RANGE, VALUE (the elements have another size), LOST, ENDED, NULL.
 *
 * # Safety
 *
 * `array` is an array; `old` is NULL or valid for a write.
 */
int tsumugi_array_compare_swap4(const struct tsumugi_array *array,
                                size_t index,
                                uint32_t expected,
                                uint32_t desired,
                                uint32_t *old);

/**
 * Does the same as `tsumugi_array_compare_swap4` on an element of 8 bytes.
 *
 * # Safety
 *
 * As for `tsumugi_array_compare_swap4`.
 */
int tsumugi_array_compare_swap8(const struct tsumugi_array *array,
                                size_t index,
                                uint64_t expected,
                                uint64_t desired,
                                uint64_t *old);

/**
 * Brings the pages of `count` elements from `index` on to this rank, and writes how many
 * have moved to `moved`, unless that is NULL. Blocks.
 *
 * Errors: RANGE, MEMORY (this rank has no room for the pages), LOST, ENDED, NULL.
 *
 * # Safety
 *
 * `array` is an array; `moved` is NULL or valid for a write.
 */
int tsumugi_array_own(const struct tsumugi_array *array,
                      size_t index,
                      size_t count,
                      size_t *moved);

/**
 * Writes the rank that has the page of an element to `owner`; the page may move at any
 * time. Blocks.
 *
 * Errors: RANGE, LOST, ENDED, NULL.
 *
 * # Safety
 *
 * `array` is an array; `owner` is valid for a write.
 */
int tsumugi_array_owner(const struct tsumugi_array *array, size_t index, uint32_t *owner);

/**
 * Brings every page back to the rank that had it at first. All ranks must call it.
 * Blocks.
 *
 * Errors: MEMORY, LOST, JOB, ENDED, NULL.
 *
 * # Safety
 *
 * `array` is an array.
 */
int tsumugi_array_return_home(const struct tsumugi_array *array);

/**
 * Lends `count` elements from `index` on, for a use of them (`TSUMUGI_CHECKOUT_*`), and
 * writes the address of their copies to `elements`. At one rank, an element is lent to
 * one writer or to any number of readers at a time. Copies stay in this rank's cache,
 * so the next checkout of the same elements needs no access to another rank until
 * `tsumugi_array_acquire`. Blocks.
 *
 * Errors: HELD (a checkout of this rank has some of the elements, and either writes),
 * MEMORY (`cached_bytes` are lent already), RANGE, LENGTH, VALUE (of `mode`), LOST,
 * ENDED, NULL.
 *
 * # Safety
 *
 * `array` is an array; `elements` and `out` are valid for a write. The program uses the
 * elements as `mode` says, and not after `tsumugi_checkin`.
 */
int tsumugi_array_checkout(const struct tsumugi_array *array,
                           size_t index,
                           size_t count,
                           int mode,
                           void **elements,
                           struct tsumugi_checkout **out);

/**
 * Gives the elements back. Elements that were lent for writing are written to the array
 * by the next `tsumugi_array_release`, or earlier. Blocks only on the lock of this
 * rank's cache.
 *
 * Errors: ENDED, NULL.
 *
 * # Safety
 *
 * `checkout` is a checkout; no thread uses its elements any more.
 */
int tsumugi_checkin(struct tsumugi_checkout *checkout);

/**
 * Writes back the elements that were lent for writing and have been checked in: a rank
 * that acquires after this sees them. Blocks.
 *
 * Errors: LOST (elements that the dead rank owned are lost; all others are written),
 * ENDED, NULL.
 *
 * # Safety
 *
 * `array` is an array.
 */
int tsumugi_array_release(const struct tsumugi_array *array);

/**
 * Discards the copies that are not lent, so that later checkouts see what other ranks
 * have released before.
 *
 * Errors: ENDED, NULL.
 *
 * # Safety
 *
 * `array` is an array.
 */
int tsumugi_array_acquire(const struct tsumugi_array *array);

/**
 * A release by every rank, followed by an acquire by every rank. All ranks must call
 * it. Blocks.
 *
 * Errors: those of `tsumugi_array_release`; LOST, JOB.
 *
 * # Safety
 *
 * `array` is an array.
 */
int tsumugi_array_fence(const struct tsumugi_array *array);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* TSUMUGI_H */
