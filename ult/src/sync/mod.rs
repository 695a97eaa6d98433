//! Locks, barriers and channels for ULTs and OS threads alike.
//!
//! | type | what it is |
//! |---|---|
//! | [`Mutex`], [`RwLock`] | a value that one thread may access, or many may read |
//! | [`Condvar`] | waiting for a condition under a mutex |
//! | [`Semaphore`] | a number of permits |
//! | [`Barrier`] | a meeting point for repeated use |
//! | [`Latch`], [`WaitGroup`] | waiting until a number of events have happened |
//! | [`Once`], [`OnceCell`] | an initialization that one thread does, once |
//! | [`Flag`] | a bit that a signal handler may raise |
//! | [`word`] | waiting until another thread has changed a word |
//! | [`channel`] | values from many senders to many receivers |
//!
//! A caller that has to wait sleeps through [`Here`](crate::Here), and its worker
//! runs other ULTs meanwhile. All of these types keep their waiters in one kind
//! of queue and serve them first-in first-out: a lock, a permit or a value is
//! handed over to the first waiter, which has it when it is woken, and no later
//! caller overtakes it. Nothing is poisoned: a panic that unwinds out of a
//! critical section only unlocks.
//!
//! The end of a name says how long the call may wait:
//!
//! | form | waits |
//! |---|---|
//! | `lock` | until it has the lock |
//! | `try_lock` | never |
//! | `lock_timeout` | for a [`Duration`](core::time::Duration) at most |
//! | `lock_within` | within a [`Limit`](crate::Limit): a point in time, a cancellation, or both |
//!
//! A call that gives up has changed nothing.
//!
//! Progress: an uncontended lock or unlock is one compare-and-swap at most;
//! everything else is blocking.

pub(crate) mod lock;
mod queue;
mod mutex;
mod condvar;
mod rwlock;
mod semaphore;
mod barrier;
mod latch;
mod once;
mod flag;
pub mod channel;
pub mod word;

pub use barrier::Barrier;
pub use condvar::Condvar;
pub use flag::Flag;
pub use latch::{Latch, WaitGroup};
pub use mutex::{Mutex, MutexGuard};
pub use once::{Once, OnceCell};
pub use rwlock::{ReadGuard, RwLock, WriteGuard};
pub use semaphore::Semaphore;
