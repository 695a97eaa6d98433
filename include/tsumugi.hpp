// tsumugi in C++17: the interface of tsumugi.h with objects that end what they own. These
// headers need the library and nothing else; a function that is not here is called from
// tsumugi.h, with the `get()` of an object. A header is included alone, or by this one:
//
//   error       errors as exceptions
//   thread      user-level threads (ULTs), schedulers, parking, values of a ULT
//   lock        mutex, condition variable, reader-writer lock
//   sync        semaphore, latch, barrier of threads, once, full and empty words
//   address     global addresses, regions, operations in progress
//   job         ranks, memory of all ranks, signals, `run`
//   remote      functions of other ranks, with types
//   request     messages and collectives in progress
//   message     messages; memory from which they are copied once
//   group       groups of ranks, collectives
//   rank_lock   locks of all ranks
//   window      windows, their fences, epochs and locks
//   heap        the global heap
//   deque       deques of work
//   array       arrays with pages that move
//
// Errors: a call that fails throws tsumugi::error, a std::system_error whose code is the
// TSUMUGI_ERROR_* of the call and whose text has the reason. No destructor throws. A
// destructor that cannot do its last operation, because a rank has died, is silent: where
// that matters, a function with a name does the same and throws. A destructor that finds the
// rules broken (a mutex that is unlocked twice) calls std::terminate.
//
// Moves: an object that was moved from owns nothing. Its end has no effect, and its calls
// throw the error NULL.
//
// Exceptions: none passes through C. What leaves the function of a ULT, of `run`, or of an
// initialization, is thrown again by the join, by `run`, by each `once::call`. What leaves a
// function of an active message is the error FAILED of the call at the other rank. A function
// of a reduction must not throw: the process ends. If a rank ends by an exception, the other
// ranks wait for it in their next collective: catch it within the rank, or let it end the
// process, and with it the job.
//
// Suspension: the rules of tsumugi.h hold: a call that blocks may continue on another OS
// thread. It may be in a `catch` block, or in a destructor that runs while the stack unwinds:
// the calls of these headers carry the exceptions along. A call of tsumugi.h does not.
#ifndef TSUMUGI_HPP
#define TSUMUGI_HPP

#include <tsumugi/address.hpp>
#include <tsumugi/array.hpp>
#include <tsumugi/deque.hpp>
#include <tsumugi/error.hpp>
#include <tsumugi/group.hpp>
#include <tsumugi/heap.hpp>
#include <tsumugi/job.hpp>
#include <tsumugi/lock.hpp>
#include <tsumugi/message.hpp>
#include <tsumugi/rank_lock.hpp>
#include <tsumugi/remote.hpp>
#include <tsumugi/request.hpp>
#include <tsumugi/sync.hpp>
#include <tsumugi/thread.hpp>
#include <tsumugi/window.hpp>

#endif
