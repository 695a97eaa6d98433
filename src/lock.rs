//! Locks for the ULTs of all ranks: mutexes and reader-writer locks, with three
//! preferences.
//!
//! ```
//! use tsumugi::lock::LockKind;
//! use tsumugi::{Error, Rank};
//!
//! tsumugi::run_ranks(2, |rt| {
//!     let lock = rt.share_lock(Rank(0), LockKind::Neutral)?;
//!     let pair = rt.share::<u64>(2)?;
//!     for _ in 0..100 {
//!         let held = lock.write()?;
//!         for index in 0..2 {
//!             let value = rt.get(pair.at(Rank(0), index))?;
//!             rt.put(pair.at(Rank(0), index), value + 1)?;
//!         }
//!         held.release()?;
//!     }
//!     rt.barrier()?;
//!     let _shared = lock.read()?;
//!     assert_eq!(rt.get(pair.at(Rank(0), 1))?, 200);
//!     Ok::<(), Error>(())
//! })
//! # .map(drop)
//! # .unwrap();
//! ```
//!
//! A lock is a few words in its home's memory; the home takes no part. Without
//! contention a reader's lock and unlock are one fetch-and-add each, and a writer's
//! ([`LockKind::Readers`]) are one compare-and-swap each. A waiter sleeps until the
//! holder in front of it writes a word of the waiter's own memory: no remote word is
//! polled. Blocking operations under a lock are complete when the lock is given
//! back; operations that were only begun
//! ([`Deferred::try_begin`](crate::Deferred::try_begin)) must have ended before.
//!
//! A rank that has died may have held the lock or stood in its queue. So each caller
//! that waits, or would have to wait, gets [`AddrError::PeerLost`], which names that
//! rank. A lock that is held stays held.
//!
//! A ULT that its scheduler cuts off while it takes or releases the lock does not
//! block the lock for others: a ULT of the rank's own scheduler completes the call
//! in its place. A lock that such a ULT holds stays held.
//!
//! Progress: taking a lock is blocking; a try and a release are lock-free.
//!
//! Paper: M. Hatanaka, A. Hori and Y. Ishikawa, on locks over the atomics of FX100;
//! see [`tsumugi_gas::lock`] for the algorithm and the differences.

mod nodes;
mod words;
mod options;

pub(crate) use nodes::Nodes;
pub use options::LockOptions;
pub use tsumugi_gas::lock::{LockKind, LockMode};
pub(crate) use words::{NODES, Words};

use crate::{AddrError, Agent, Error, Rank, Runtime};
use std::fmt;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::time::Duration;
use tsumugi_core::mem::RemoteAddr;
use tsumugi_gas::lock::drive::{self, HeldLock, LockRefused};
use tsumugi_gas::lock::{LOCK_BYTES, Lock};

/// A lock of all ranks. A handle: cheap to clone, and to send to other threads of
/// the rank.
#[derive(Clone)]
pub struct SharedLock {
    inner: Arc<LockInner>,
}

struct LockInner {
    words: Words,
    lock: Lock,
}

/// The lock, held until this is dropped.
#[must_use = "the lock is released as soon as the guard is dropped"]
pub struct LockGuard<'l> {
    lock: &'l SharedLock,
    grip: Option<Grip>,
}

/// How the lock is held. It has two words, so that the usual case needs no memory.
enum Grip {
    /// By one atomic operation.
    Alone(LockMode),
    /// By a claim (a queue node).
    Claimed(Box<HeldLock>),
}

impl Runtime {
    /// Makes a lock with its words at `home`. Collective: every rank calls it with
    /// the same `home` and `kind`, in the same order.
    ///
    /// # Errors
    ///
    /// Those of [`share`](Self::share); [`Error::HomesDiffer`]; [`AddrError::NoSuchRank`]:
    /// `home` is not a rank.
    pub fn share_lock(&self, home: Rank, kind: LockKind) -> Result<SharedLock, Error> {
        LockOptions::new().kind(kind).create(self, home)
    }
}

impl LockOptions {
    /// Makes a lock with its words at `home`. Collective, as
    /// [`Runtime::share_lock`]: every rank calls it with the same `home` and options.
    ///
    /// # Errors
    ///
    /// Those of [`Runtime::share_lock`].
    pub fn create(&self, rt: &Runtime, home: Rank) -> Result<SharedLock, Error> {
        rt.check_home(home)?;
        let words = Words::share(rt, self.agent, LOCK_BYTES)?;
        let home = RemoteAddr { rank: home, key: words.key(), offset: 0 };
        let lock = Lock { home, nodes: words.node_table(), kind: self.kind };
        Ok(SharedLock { inner: Arc::new(LockInner { words, lock }) })
    }
}

impl SharedLock {
    /// Takes the lock, shared with other readers; a [`LockKind::Mutex`] exclusively.
    /// Waits for it.
    ///
    /// # Errors
    ///
    /// [`AddrError::PeerLost`]: a rank has died; the error names it.
    #[inline]
    pub fn read(&self) -> Result<LockGuard<'_>, AddrError> {
        self.lock(LockMode::Shared)
    }

    /// Takes the lock exclusively. Waits for it.
    ///
    /// # Errors
    ///
    /// [`AddrError::PeerLost`]: a rank has died; the error names it.
    #[inline]
    pub fn write(&self) -> Result<LockGuard<'_>, AddrError> {
        self.lock(LockMode::Exclusive)
    }

    /// Takes the lock in `mode`. Waits for it.
    ///
    /// # Errors
    ///
    /// [`AddrError::PeerLost`]: a rank has died; the error names it.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn lock(&self, mode: LockMode) -> Result<LockGuard<'_>, AddrError> {
        let LockInner { words, lock } = &*self.inner;
        drive::lock(words, lock, mode, |claim| words.take_node_for(claim))
            .map(|held| self.guard(held))
    }

    /// Takes the lock if that needs no wait; else returns `None` at once.
    ///
    /// # Errors
    ///
    /// [`AddrError::PeerLost`]: the home of the lock has died.
    pub fn try_lock(&self, mode: LockMode) -> Result<Option<LockGuard<'_>>, AddrError> {
        let LockInner { words, lock } = &*self.inner;
        let asked = drive::try_lock(words, lock, mode, words.take_node());
        asked.map(|asked| self.settle(asked))
    }

    /// Takes the lock, and waits for it for `limit` at most; `None` if that has
    /// passed. A caller that gives up leaves the queue, which closes behind it.
    ///
    /// # Errors
    ///
    /// [`AddrError::PeerLost`]: a rank has died; the error names it.
    pub fn lock_timeout(
        &self,
        mode: LockMode,
        limit: Duration,
    ) -> Result<Option<LockGuard<'_>>, AddrError> {
        let LockInner { words, lock } = &*self.inner;
        let asked = drive::lock_timeout(words, lock, mode, limit, words.take_node());
        asked.map(|asked| self.settle(asked))
    }

    /// The agent that carries out the atomics on the lock's words.
    pub fn agent(&self) -> Agent {
        self.inner.words.agent()
    }

    fn settle(&self, asked: Result<HeldLock, LockRefused>) -> Option<LockGuard<'_>> {
        match asked {
            Ok(held) => Some(self.guard(held)),
            Err(LockRefused { node, has_left }) => {
                self.inner.words.release_node(node, has_left);
                None
            }
        }
    }

    #[inline(always)]
    fn guard(&self, held: HeldLock) -> LockGuard<'_> {
        let is_alone = held.is_alone();
        let grip = if is_alone { Grip::Alone(held.mode()) } else { Grip::Claimed(Box::new(held)) };
        LockGuard { lock: self, grip: Some(grip) }
    }
}

impl LockGuard<'_> {
    /// Releases the lock.
    ///
    /// # Errors
    ///
    /// [`AddrError::PeerLost`]: the home has died, or the rank that was to be woken.
    #[inline]
    pub fn release(self) -> Result<(), AddrError> {
        // So the drop does not release a second time.
        ManuallyDrop::new(self).give_back()
    }

    // Inlined as the taking is: a dozen instructions, of which a call would be some.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn give_back(&mut self) -> Result<(), AddrError> {
        match self.grip.take() {
            None => Ok(()),
            Some(Grip::Alone(mode)) => self.unlock(HeldLock::alone(mode)),
            Some(Grip::Claimed(held)) => self.lets_go(*held),
        }
    }

    #[cold]
    #[inline(never)]
    fn lets_go(&self, held: HeldLock) -> Result<(), AddrError> {
        self.unlock(held)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn unlock(&self, held: HeldLock) -> Result<(), AddrError> {
        let LockInner { words, lock } = &*self.lock.inner;
        if let Some(node) = held.unlock(words, lock)? {
            words.release_node(node, false);
        }
        Ok(())
    }
}

impl Drop for LockGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        // A lock that is out of reach can neither be released nor taken by another
        // rank.
        let _ = self.give_back();
    }
}

impl fmt::Debug for SharedLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedLock({:?} at {})", self.inner.lock.kind, self.inner.lock.home.rank)
    }
}

impl fmt::Debug for LockGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LockGuard({:?})", self.lock)
    }
}
